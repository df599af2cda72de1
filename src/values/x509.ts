import { createPrivateKey, generateKeyPairSync, hash, randomBytes, sign, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';

/** Certificate and private key, in PEM. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

/** Certificate to be issued; times in milliseconds since 1970. */
export interface IssueProps {
  /** Common name, of which 64 characters are taken. */
  readonly commonName: string;
  readonly notBefore: number;
  readonly notAfter: number;
  /** DNS names and IP addresses of a server or client. @default - the certificate is that of a certificate authority */
  readonly names?: readonly string[];
  /** Certificate authority that signs it. @default - its own key does */
  readonly issuer?: KeyPair;
}

/**
 * Issues a certificate for a new key on the curve P-256. The library is loaded by the first one.
 * @see https://www.rfc-editor.org/rfc/rfc5280
 */
export async function issueCertificate({ names, issuer, ...props }: IssueProps): Promise<KeyPair> {
  const { AsnConvert, OctetString } = await import('@peculiar/asn1-schema');
  const x509 = await import('@peculiar/asn1-x509');
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const spki = AsnConvert.parse(publicKey.export({ type: 'spki', format: 'der' }), x509.SubjectPublicKeyInfo);
  const ownId = new x509.SubjectKeyIdentifier(hash('sha1', Buffer.from(spki.subjectPublicKey), 'buffer'));
  const commonName = new x509.AttributeValue({ utf8String: props.commonName.slice(0, 64) });
  const attribute = new x509.AttributeTypeAndValue({ type: '2.5.4.3', value: commonName });
  const subject = new x509.Name([new x509.RelativeDistinguishedName([attribute])]);
  const signer =
    issuer && AsnConvert.parse(new X509Certificate(issuer.cert).raw, x509.Certificate).tbsCertificate;
  const signerId = signer?.extensions?.find(({ extnID }) => extnID === x509.id_ce_subjectKeyIdentifier);
  const keyIdentifier = signerId && AsnConvert.parse(signerId.extnValue.buffer, x509.SubjectKeyIdentifier);
  const { digitalSignature, keyCertSign, cRLSign } = x509.KeyUsageFlags;
  const general = names?.map(
    (name) => new x509.GeneralName(isIP(name) ? { iPAddress: name } : { dNSName: name }),
  );
  const extensions: (readonly [id: string, value: object, critical?: boolean])[] = [
    [
      x509.id_ce_basicConstraints,
      new x509.BasicConstraints(names ? {} : { cA: true, pathLenConstraint: 0 }),
      true,
    ],
    [x509.id_ce_keyUsage, new x509.KeyUsage(names ? digitalSignature : keyCertSign | cRLSign), true],
    [x509.id_ce_subjectKeyIdentifier, ownId],
  ];
  if (keyIdentifier)
    extensions.push([x509.id_ce_authorityKeyIdentifier, new x509.AuthorityKeyIdentifier({ keyIdentifier })]);
  if (general) {
    const usages = new x509.ExtendedKeyUsage([x509.id_kp_serverAuth, x509.id_kp_clientAuth]);
    extensions.push([x509.id_ce_extKeyUsage, usages]);
    extensions.push([x509.id_ce_subjectAltName, new x509.SubjectAlternativeName(general)]);
  }
  const ecdsaWithSha256 = new x509.AlgorithmIdentifier({ algorithm: '1.2.840.10045.4.3.2' });
  const tbsCertificate = new x509.TBSCertificate({
    ...{ version: x509.Version.v3, signature: ecdsaWithSha256, issuer: signer?.subject ?? subject, subject },
    // Positive, and without a zero at its head.
    serialNumber: new Uint8Array([0x40, ...randomBytes(15)]).buffer,
    validity: new x509.Validity({ notBefore: new Date(props.notBefore), notAfter: new Date(props.notAfter) }),
    subjectPublicKeyInfo: spki,
    extensions: new x509.Extensions(
      extensions.map(([extnID, value, critical = false]) => {
        const extnValue = new OctetString(AsnConvert.serialize(value));
        return new x509.Extension({ extnID, critical, extnValue });
      }),
    ),
  });
  const signingKey = issuer ? createPrivateKey(issuer.key) : privateKey;
  const signature = sign('sha256', Buffer.from(AsnConvert.serialize(tbsCertificate)), signingKey);
  const signatureValue = new Uint8Array(signature).buffer;
  const whole = new x509.Certificate({ tbsCertificate, signatureAlgorithm: ecdsaWithSha256, signatureValue });
  return {
    cert: new X509Certificate(Buffer.from(AsnConvert.serialize(whole))).toString(),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}
