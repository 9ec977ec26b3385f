"""What an image holds, told: programs, buffers, routes, arguments, and how its run ends."""
