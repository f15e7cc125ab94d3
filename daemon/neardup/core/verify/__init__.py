"""The decision on a nominated pair: tiers, scores, alignment and spans; and what follows from flags."""
