import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

interface Tunnel {
  readonly client: Socket;
  readonly inner: Socket;
}

/**
 * Where clients connect: bytes pass between them and the proxy proper, unread. Below TLS, since a connection that
 * has died silently doesn't even answer an HTTP/2 ping.
 */
export class TcpFront {
  /** Connections that clients have asked for, those that were turned away included. */
  attempts = 0;
  private server: Server | undefined;
  private listensOn = 0;
  private turnsAway = false;
  /** By the port that the inner side knows the connection by. */
  private readonly tunnels = new Map<number, Tunnel>();

  /** @param innerPort where the proxy proper listens, on loopback */
  constructor(private readonly innerPort: number) {}

  get port(): number {
    return this.listensOn;
  }

  /** On the same port each time. */
  async listen(): Promise<void> {
    this.turnsAway = false;
    if (this.server) return;
    const server = createServer((client) => {
      this.attempts++;
      if (this.turnsAway) client.resetAndDestroy();
      else this.open(client);
    });
    server.listen(this.listensOn, '127.0.0.1');
    await once(server, 'listening');
    this.server = server;
    this.listensOn = (server.address() as AddressInfo).port;
  }

  /** Nobody listens: connections are refused, and those that are open are reset. */
  async refuse(): Promise<void> {
    const { server } = this;
    this.server = undefined;
    const closed = server && once(server, 'close');
    server?.close();
    this.destroy();
    await closed;
  }

  /** Every connection is reset as soon as it is there; unlike those that are refused, such tries are counted. */
  turnAway(): void {
    this.turnsAway = true;
    this.destroy();
  }

  /** Nothing passes any more in either direction, and nothing tells the client so. */
  freeze(port: number): void {
    const tunnel = this.tunnels.get(port);
    if (!tunnel) return;
    for (const socket of [tunnel.client, tunnel.inner]) socket.unpipe().pause();
  }

  /** Resets one connection, or all. */
  destroy(port?: number): void {
    for (const [key, tunnel] of this.tunnels) {
      if (port !== undefined && key !== port) continue;
      tunnel.client.resetAndDestroy();
      tunnel.inner.destroy();
    }
  }

  private open(client: Socket): void {
    const inner = connect(this.innerPort, '127.0.0.1');
    for (const [socket, other] of [
      [client, inner],
      [inner, client],
    ] as const) {
      socket.setNoDelay();
      socket.on('error', () => undefined);
      socket.once('close', () => {
        other.destroySoon();
      });
    }
    inner.once('connect', () => {
      const port = inner.localPort ?? 0;
      this.tunnels.set(port, { client, inner });
      inner.once('close', () => this.tunnels.delete(port));
      client.pipe(inner).pipe(client);
    });
  }
}
