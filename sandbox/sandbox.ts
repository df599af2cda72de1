import type { SandboxClient, SandboxHandle } from './client.js';
import type { ProcessIdentity } from './process-identity.js';
import type { Log } from './progress.js';

/** How to start a sandbox. */
export interface SandboxOptions {
  /**
   * Users to make beside `admin`, without any rights until a role is bound to them by name.
   *
   * @default - none
   */
  readonly users?: readonly string[];
  /**
   * Start only etcd and the API server: faster, but nothing schedules, collects garbage, empties namespaces or
   * makes service accounts.
   *
   * @default false
   */
  readonly apiOnly?: boolean;
  /**
   * Write the audit log.
   *
   * @default true
   */
  readonly auditLog?: boolean;
  /**
   * Further arguments of the API server.
   *
   * @default - none
   */
  readonly apiServerArguments?: readonly string[];
  /**
   * The sandbox's folder; it must be empty or not exist, and is removed when the sandbox ends.
   *
   * @default - a new temporary folder
   */
  readonly dataDir?: string;
  /**
   * Takes news: a build's progress, a program that ended by itself.
   *
   * @default - lines on standard error
   */
  readonly log?: Log;
  /**
   * Folders with control-plane programs, looked into before all other places.
   *
   * @default - none
   */
  readonly assets?: readonly string[];
}

/** What remains to be known of a sandbox that outlives its starter. */
export interface SandboxRecord {
  readonly handle: SandboxHandle;
  /** The processes by program. */
  readonly processes: Readonly<Record<string, ProcessIdentity>>;
}

/**
 * A control plane of its own on 127.0.0.1.
 *
 * **Guarantees**: it ends with the process that started it, however that ends, unless {@link detach} was called.
 */
export interface Sandbox extends SandboxClient, AsyncDisposable {
  /** Plain data to open the sandbox with in another process, by `openSandbox`. */
  readonly handle: SandboxHandle;
  /** The processes that run now, by program. */
  readonly processes: Readonly<Record<string, ProcessIdentity>>;
  /** Ends the API server and nothing else; its port stays free for it. */
  stopApiServer(): Promise<void>;
  /** Starts the API server again, on the same port and data, and waits until it is ready. */
  startApiServer(): Promise<void>;
  restartApiServer(): Promise<void>;
  /** Ends etcd, once the API server was stopped; its folder may be replaced then. */
  stopEtcd(): Promise<void>;
  /** Starts etcd again, on the same ports, and waits until it answers. */
  startEtcd(): Promise<void>;
  /**
   * Ends the controller manager and starts it again. Its garbage collector looks for new kinds every 30 s only, and
   * when it starts: after this, it knows those of the CRDs installed so far.
   */
  restartControllerManager(): Promise<void>;
  /** Ends all processes and removes the folder. Can be called more than once. */
  stop(): Promise<void>;
  /** Lets the sandbox run on when this process ends. Nothing but the returned record knows of it then. */
  detach(): Promise<SandboxRecord>;
}
