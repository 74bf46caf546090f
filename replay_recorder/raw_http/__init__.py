"""Raw HTTP of model and tool calls, taken as it passes through the clients."""
