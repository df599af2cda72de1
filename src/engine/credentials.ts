import type { KubeConfig } from '@kubernetes/client-node';

export interface TlsMaterial {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

export interface Credentials {
  readonly tls: TlsMaterial;
  readonly headers: Readonly<Record<string, string>>;
}

/** Only headers and TLS material are taken from client-node, which would open a connection for every request. */
export async function readCredentials(kubeConfig: KubeConfig): Promise<Credentials> {
  const options: TlsMaterial & { headers?: Record<string, unknown>; auth?: string | null } = {};
  await kubeConfig.applyToHTTPSOptions(options);
  const headers = Object.fromEntries(
    Object.entries(options.headers ?? {})
      .filter(([name]) => name.toLowerCase() !== 'user-agent')
      .map(([name, value]) => [name.toLowerCase(), String(value)]),
  );
  if (options.auth && !('authorization' in headers))
    headers.authorization = `Basic ${Buffer.from(options.auth).toString('base64')}`;
  const { ca, cert, key, servername, rejectUnauthorized } = options;
  const tls = Object.fromEntries(
    Object.entries({ ca, cert, key, servername, rejectUnauthorized }).filter(
      ([, value]) => value !== undefined,
    ),
  );
  return { tls, headers };
}
