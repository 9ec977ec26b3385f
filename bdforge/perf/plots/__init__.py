"""Pictures of performance and of access orders."""
