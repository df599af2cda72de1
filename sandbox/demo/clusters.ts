import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { rulesFor } from 'cdk8s-reconstruct';
import { appService } from 'cdk8s-reconstruct/kinds';
import { writeYaml } from '#values/yaml.js';
import { startSandbox, type AuditEntry, type Sandbox } from '../control-plane.js';
import { repoFolder } from '../paths.js';
import { heldLog, type Log } from '../progress.js';
import { letRunOn, lockSandbox, readState, removeState } from '../state.js';
import type { DemoCluster, Stage } from './stage.js';
import { appServices, Kubectl } from './kubectl.js';
import { UnreachableError } from './observe.js';
import { table } from './show.js';

/** File of the AppService CRD in the repository. */
const crdFile = `crds/${appServices}.yaml`;

/**
 * Installs the CRD, which must not be there, and waits until the API server serves it.
 *
 * @param created is called once it is there, so that it can be removed again
 */
async function installCrd(kubectl: Kubectl, created?: () => void): Promise<void> {
  await kubectl.demonstrate('create', '-f', crdFile);
  created?.();
  // kubectl fails to wait for a condition while there are none at all, as for a moment after this: they come with the names.
  const accepted = '--for=jsonpath={.status.acceptedNames.kind}=AppService';
  await kubectl.run('wait', accepted, `crd/${appServices}`, '--timeout=30s');
  await kubectl.demonstrate('wait', '--for=condition=Established', `crd/${appServices}`, '--timeout=30s');
  // Also waits for the API server's cache of the new kind, which answers a watch that comes too early.
  await kubectl.demonstrate('get', appServices, '--all-namespaces');
}

const name = 'reconstruct-demo';

/** A ClusterRole with what a controller of AppServices needs and no more, bound to the user. */
function rightsYaml(user: string): string {
  const metadata = { name };
  const apiVersion = 'rbac.authorization.k8s.io/v1';
  const role = { apiVersion, kind: 'ClusterRole', metadata, rules: rulesFor([appService]) };
  const binding = {
    ...{ apiVersion, kind: 'ClusterRoleBinding', metadata },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
  };
  return `${writeYaml(role)}---\n${writeYaml(binding)}`;
}

/** The same rights for people. */
function rightsTable(): string {
  const rows = rulesFor([appService]).map(({ apiGroups, resources, verbs }) => {
    const group = apiGroups.join() === '' ? '' : `.${apiGroups.join()}`;
    // The group belongs to the resource, also before a subresource: appservices.kosmos.io/status.
    const names = resources.map((resource) => resource.replace(/^[^/]+/, (name) => `${name}${group}`));
    return [names.join(), verbs.join(', ')];
  });
  return table([['RESOURCE', 'MAY'], ...rows]);
}

/** Describes requests by verb, e.g. `12 requests: 7 patch, 3 watch`. A watch is in the audit log twice and counts once. */
export function describeRequests(entries: readonly Pick<AuditEntry, 'auditID' | 'verb'>[]): string {
  const verbs = [...new Map(entries.map(({ auditID, verb }) => [auditID, verb])).values()];
  const counts = [...new Set(verbs)].map((verb) => ({
    verb,
    count: verbs.filter((one) => one === verb).length,
  }));
  counts.sort((a, b) => b.count - a.count);
  return `${verbs.length} requests: ${counts.map(({ verb, count }) => `${count} ${verb}`).join(', ')}`;
}

/**
 * Reaches the user's own cluster. Whatever is made there goes at the end; nothing else is touched.
 *
 * **Errors**: UnreachableError.
 */
export async function reachContextCluster(stage: Stage, context: string): Promise<DemoCluster> {
  const { show, watchdog, signal } = stage;
  const namespace = `reconstruct-demo-${randomBytes(3).toString('hex')}`;
  const bare = new Kubectl({ program: 'kubectl', env: process.env, prefix: [], show, watchdog, signal });
  await checkContext(bare, context);
  const clusterWide = bare.with({ prefix: ['--context', context] });
  const kubectl = bare.with({ prefix: ['--context', context, '--namespace', namespace] });
  show.say(
    `The demo plays on the cluster of your context ${context}, in the namespace ${namespace}, which is made for it ` +
      'and goes with it.',
  );
  await checkReachable(clusterWide, context);
  return {
    kubectl,
    deadlineMilliseconds: 180_000,
    controllerArguments: ['--context', context, '--watch-namespace', namespace],
    install: () => installInNamespace(clusterWide, namespace, stage),
    hasNodePort: (port) => hasNodePort(kubectl, stage.folder, port),
    requests: () => Promise.resolve(undefined),
  };
}

async function checkContext(kubectl: Kubectl, context: string): Promise<void> {
  const { stdout, stderr, code } = await kubectl
    .try('config', 'get-contexts', '-o', 'name')
    .catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      throw new UnreachableError('--context needs kubectl, and there is none on your PATH.');
    });
  if (code !== 0) throw new UnreachableError(`Your kubeconfig cannot be read: ${stderr.trim()}`);
  const known = stdout.split('\n').filter((line) => line !== '');
  if (known.includes(context)) return;
  throw new UnreachableError(
    `--context ${context}: there is no such context; there are ${known.join(', ') || 'none'}.`,
  );
}

async function checkReachable(kubectl: Kubectl, context: string): Promise<void> {
  const args = ['version', '--request-timeout=15s'];
  const { stdout, stderr, code } = await kubectl.try(...args);
  if (code !== 0) {
    throw new UnreachableError(`The cluster of the context ${context} cannot be reached: ${stderr.trim()}`);
  }
  kubectl.show(args, stdout);
}

async function installInNamespace(
  kubectl: Kubectl,
  namespace: string,
  { show, cleanUp }: Stage,
): Promise<void> {
  const last = kubectl.uninterrupted();
  const { stdout: present } = await kubectl.run(
    'get',
    'crd',
    appServices,
    '--ignore-not-found',
    '-o',
    'name',
  );
  if (present !== '') {
    show.say(
      'Your cluster knows the kind AppService already: its CustomResourceDefinition is left as it is. If a controller ' +
        'of AppServices runs there for all namespaces, it takes part in what follows.',
    );
  } else {
    show.say(
      'The CustomResourceDefinition teaches the API server the kind AppService. It is removed at the end, unless there ' +
        'are AppServices in other namespaces by then.',
    );
    await installCrd(kubectl, () => {
      const byHand = kubectl.typed(['delete', 'crd', appServices]);
      cleanUp.add(`remove the CRD ${appServices}`, () => removeCrd(last, show), byHand);
    });
  }
  show.say('The controller will run with your own rights, and look at this namespace only:');
  const remove = ['delete', 'namespace', namespace, '--ignore-not-found', '--timeout=180s'];
  cleanUp.add(
    `remove the namespace ${namespace}`,
    async () => {
      await last.run(...remove);
    },
    kubectl.typed(remove),
  );
  await kubectl.demonstrate('create', 'namespace', namespace);
}

async function removeCrd(kubectl: Kubectl, show: Stage['show']): Promise<void> {
  const { stdout } = await kubectl.run('get', 'crd', appServices, '--ignore-not-found', '-o', 'name');
  if (stdout === '') return;
  const others = await kubectl.run('get', appServices, '--all-namespaces', '-o', 'name');
  if (others.stdout === '') await kubectl.run('delete', 'crd', appServices, '--timeout=60s');
  else show.say('There are AppServices in other namespaces by now, so the CustomResourceDefinition stays.');
}

/** Asks the API server, which makes nothing then, for a Service with that node port. */
async function hasNodePort(kubectl: Kubectl, folder: string, nodePort: number): Promise<boolean> {
  const service = {
    ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'node-port-check' } },
    spec: { type: 'NodePort', ports: [{ port: 80, nodePort }] },
  };
  const file = join(folder, 'node-port-check.yaml');
  await writeFile(file, writeYaml(service));
  return (await kubectl.try('create', '--dry-run=server', '-f', file)).code === 0;
}

/** The plain user that the controller runs as. */
const operatorUser = 'operator';

/** The name that a sandbox gets which is kept. */
const keptName = 'demo';

/** The sandbox of the demo, while it starts. */
export interface StartingSandbox {
  readonly began: number;
  /** May reject before anything waits for it: that is no unhandled rejection. */
  readonly sandbox: Promise<Sandbox>;
  readonly isStarting: () => boolean;
  /** Writes what it has said until now. */
  readonly releaseLog: () => void;
}

/** Begins to start a sandbox in the background; it ends with the demo unless it is to be kept. */
export function beginSandbox(stage: Stage): StartingSandbox {
  const began = Date.now();
  const { log, release: releaseLog } = heldLog();
  let isStarting = true;
  const sandbox = startDemoSandbox(stage, log).finally(() => (isStarting = false));
  sandbox.catch(() => undefined);
  return { began, sandbox, isStarting: () => isStarting, releaseLog };
}

async function startDemoSandbox(stage: Stage, log: Log): Promise<Sandbox> {
  const { options, cleanUp } = stage;
  const dataDir = options.keep ? await claimFolder(stage) : undefined;
  const users = [operatorUser];
  const sandbox = await startSandbox({ users, log, ...(dataDir !== undefined && { dataDir }) });
  if (options.keep) cleanUp.add('keep the sandbox', () => letRunOn(sandbox));
  else cleanUp.add('stop the sandbox', () => sandbox.stop());
  return sandbox;
}

/** Waits for the sandbox. */
export async function startSandboxCluster(stage: Stage, starting: StartingSandbox): Promise<DemoCluster> {
  const { show, options } = stage;
  show.say(
    'etcd, the API server, the controller manager and the scheduler start on 127.0.0.1: the real programs. Only ' +
      'the two nodes are simulated: their pods become ready without a container being run. This began with the demo; ' +
      'the first time, the programs are downloaded, or compiled where they cannot be downloaded, which takes some ' +
      'minutes.',
  );
  starting.releaseLog();
  const sandbox = await starting.sandbox;
  const kubectl = kubectlOf(sandbox, stage);
  show.say('From here on, kubectl runs as its administrator.');
  await kubectl.demonstrate('get', 'nodes');
  return {
    kubectl,
    deadlineMilliseconds: 30_000,
    controllerArguments: ['--kubeconfig', sandbox.kubeconfig(operatorUser)],
    install: () => install(sandbox, kubectl, stage),
    hasNodePort: () => Promise.resolve(true),
    requests: async () => describeRequests(await sandbox.audit(operatorUser)),
    ...(options.keep && { farewell: farewell(sandbox) }),
  };
}

function kubectlOf(sandbox: Sandbox, { show, watchdog, signal }: Stage): Kubectl {
  const env = {
    ...process.env,
    KUBECONFIG: sandbox.adminKubeconfig,
    KUBECACHEDIR: join(sandbox.dir, 'kubectl-cache'), // Not the user's ~/.kube/cache.
    KUBERC: 'off',
  };
  return new Kubectl({
    ...{ program: sandbox.kubectlPath, env, prefix: [] },
    ...{ show, watchdog, signal, endWithDemo: true },
  });
}

async function install(sandbox: Sandbox, kubectl: Kubectl, { show, folder }: Stage): Promise<void> {
  show.say('The CustomResourceDefinition teaches the API server the kind AppService.');
  await installCrd(kubectl);
  show.say(
    `The controller will run as the plain user "${operatorUser}", who has exactly the rights that follow from the ` +
      'kinds it serves:',
  );
  show.output(rightsTable());
  const file = join(folder, 'rights.yaml');
  await writeFile(file, rightsYaml(operatorUser));
  await kubectl.demonstrate('create', '-f', file);
  show.say(
    "Kubernetes' garbage collector looks for new kinds every 30 seconds only. To avoid that wait later, " +
      'the controller manager is restarted now.',
  );
  await sandbox.restartControllerManager();
}

/** Takes the place of the kept sandbox; only this process can use it then. */
async function claimFolder({ cleanUp }: Stage): Promise<string> {
  const { dir, release } = await lockSandbox(keptName);
  cleanUp.add('release the sandbox’s lock', release);
  const state = await readState(dir);
  if (state.kind === 'running' || state.kind === 'broken')
    throw new Error(
      `A sandbox ${keptName} is still there. Remove it with: npm run sandbox -- down --name ${keptName}`,
    );
  await removeState(dir, state);
  return dir;
}

function farewell(sandbox: Sandbox): string[] {
  // The user's own `node` may be too old; the project brings one.
  const own = relative(repoFolder(), process.execPath);
  const node = own.startsWith('..') ? process.execPath : own;
  return [
    'The sandbox stays up, with the CRD and the rights. Use it from this folder with:',
    `  export KUBECONFIG=${sandbox.adminKubeconfig}`,
    `  ${sandbox.kubectlPath} apply -f examples/appservice-sample.yaml`,
    'The controller has ended. Start it again with:',
    `  ${node} lib/cli/main.js run --kinds appservice --log-format pretty --kubeconfig ${sandbox.kubeconfig(operatorUser)}`,
    'Stop the sandbox and remove all of it with:',
    `  npm run sandbox -- down --name ${keptName}`,
  ];
}
