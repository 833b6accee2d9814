"""What people hand us, validated: profiles, models, scenarios and HuggingFace configs."""
