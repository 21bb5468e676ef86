"""What a person looks at: pages, charts, contact sheets, progress, pictures in a terminal."""
