import jwt  # PyJWT, with cryptography

def verifier(issuer, audience, typ):
    keys = jwt.PyJWKClient(f"{issuer}/jwks.json")
    def verify(token):
        if jwt.get_unverified_header(token).get("typ") != typ:
            raise jwt.InvalidTokenError(f"typ is not {typ}")
        claims = jwt.decode(token, keys.get_signing_key_from_jwt(token).key, algorithms=["ES256"], issuer=issuer,
            audience=audience, options={"require": ["exp", "iss", "aud", "sub", "client_id"]})
        if "cnf" in claims:
            raise jwt.InvalidTokenError("bound to a key, of which nothing here asks for a proof")
        return claims
    return verify
