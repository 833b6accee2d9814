"""Does the file say what the engine says?"""
