"""The tuner: every legal design of a space, ranked by the model."""
