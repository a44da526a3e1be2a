"""Who is shown the stimuli: any torch module, seen through its named layers."""
