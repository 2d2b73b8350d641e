"""Language models behind one small protocol; ``castle.llm.registry.provider_of`` picks the one in force."""
