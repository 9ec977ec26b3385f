"""Small BitNets for tests and examples: random or trained, written as Hugging Face has them or as GGUF."""
