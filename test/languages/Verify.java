import com.nimbusds.jose.*;
import com.nimbusds.jose.jwk.source.*;
import com.nimbusds.jose.proc.*;
import com.nimbusds.jwt.*;
import com.nimbusds.jwt.proc.*;
import java.net.URL;
import java.util.Collections;
import java.util.Set;

class Verify {
    static JWTProcessor<SecurityContext> verifier(String issuer, String audience, String typ) throws Exception {
        var keys = JWKSourceBuilder.create(new URL(issuer + "/jwks.json")).build();
        var processor = new DefaultJWTProcessor<SecurityContext>();
        processor.setJWSTypeVerifier(new DefaultJOSEObjectTypeVerifier<>(new JOSEObjectType(typ)));
        processor.setJWSKeySelector(new JWSVerificationKeySelector<>(JWSAlgorithm.ES256, keys));
        var required = Set.of("exp", "iss", "aud", "sub", "client_id");
        var bound = Set.of("cnf"); // bound to a key, of which nothing here asks for a proof
        var exact = new JWTClaimsSet.Builder().issuer(issuer).build();
        var here = Collections.singleton(audience); // a Set.of cannot be asked whether it has null
        processor.setJWTClaimsSetVerifier(new DefaultJWTClaimsVerifier<>(here, exact, required, bound));
        return processor; // process(token, null) returns the claims, or throws
    }
}
