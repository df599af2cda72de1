import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** The ports of one control plane, all on 127.0.0.1. */
export interface Ports {
  readonly etcdClient: number;
  readonly etcdPeer: number;
  readonly apiServer: number;
  readonly controllerManager: number;
  readonly scheduler: number;
  readonly kwok: number;
}

/**
 * Below the ports systems give to outgoing connections (32768 up on Linux, 49152 up on macOS): one of those must
 * not take the API server's port while it restarts.
 */
const range = { from: 15_000, to: 32_000 } as const;

/**
 * Chooses free ports.
 *
 * **Caveats**: they are not reserved; another process may take one before its program does, and that program then
 * ends with "address already in use".
 */
export async function choosePorts(): Promise<Ports> {
  const chosen = new Set<number>();
  while (chosen.size < 6) {
    const port = randomInt(range.from, range.to);
    if (!chosen.has(port) && (await isFree(port))) chosen.add(port);
  }
  const [etcdClient, etcdPeer, apiServer, controllerManager, scheduler, kwok] = [...chosen] as [
    ...[number, number, number, number, number, number],
  ];
  return { etcdClient, etcdPeer, apiServer, controllerManager, scheduler, kwok };
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => {
      resolve(false);
    });
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => {
      server.close(() => {
        resolve(true);
      });
    });
  });
}
