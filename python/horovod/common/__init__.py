"""What Horovod's adapters have in common."""
