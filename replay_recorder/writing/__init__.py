"""How a run is written down: fields as JSON, lines of a file, the record that they make."""
