"""What coding agents are offered by the Model Context Protocol."""
