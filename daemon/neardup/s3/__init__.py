"""Amazon S3 and stores that speak its protocol.

`errors` says what a refusal means, and is all that the readers of pages need, who fetch with curl; `objects` reads and
writes single objects, such as manifests and exports, over aiobotocore, which takes half a second to load.
"""
