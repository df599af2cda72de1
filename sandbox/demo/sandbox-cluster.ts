import { mkdir, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { startSandbox, type Sandbox } from '../control-plane.js';
import { tryLock } from '../lock.js';
import { repoFolder } from '../paths.js';
import { readState, removeState, writeState } from '../state.js';
import type { DemoCluster, Stage } from './cluster.js';
import { installCrd } from './crd.js';
import { Kubectl } from './kubectl.js';
import { countRequests, describeRequests } from './requests.js';
import { rightsTable, rightsYaml } from './rights.js';

/** The plain user that the controller runs as. */
const operatorUser = 'operator';

/** The name that a sandbox gets which is kept. */
const keptName = 'demo';

/** Starts a sandbox for the demo; it ends with the demo unless it is to be kept. */
export async function startSandboxCluster(stage: Stage): Promise<DemoCluster> {
  const { show, options, cleanUp } = stage;
  show.say(
    'etcd, the API server, the controller manager and the scheduler start on 127.0.0.1: the real programs. Only ' +
      'the two nodes are simulated: their pods become ready without a container being run. The first time of all, ' +
      'the programs are compiled, which takes some minutes; progress is shown.',
  );
  const dataDir = options.keep ? await claimFolder(stage) : undefined;
  const sandbox = await startSandbox({ users: [operatorUser], ...(dataDir !== undefined && { dataDir }) });
  if (options.keep) cleanUp.add('keep the sandbox', () => keep(sandbox));
  else cleanUp.add('stop the sandbox', () => sandbox.stop());
  const kubectl = kubectlOf(sandbox, stage);
  show.say('kubectl, from here on, is its administrator’s.');
  await kubectl.demonstrate('get', 'nodes');
  return {
    kubectl,
    deadlineMilliseconds: 30_000,
    controllerArguments: ['--kubeconfig', sandbox.kubeconfig(operatorUser)],
    install: () => install(sandbox, kubectl, stage),
    hasNodePort: () => Promise.resolve(true),
    requests: async () => describeRequests(countRequests(await sandbox.audit(operatorUser))),
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
    "Kubernetes' garbage collector looks for new kinds every 30 seconds only. So that nobody has to wait for it later, " +
      'the controller manager is started anew now.',
  );
  await sandbox.restartControllerManager();
}

/** Takes the place of the kept sandbox; only this process can use it then. */
async function claimFolder({ cleanUp }: Stage): Promise<string> {
  const root = join(repoFolder(), '.sandbox');
  const dir = join(root, keptName);
  await mkdir(root, { recursive: true });
  const lock = await tryLock(`${dir}.lock`);
  if ('pid' in lock) {
    throw new Error(`Process ${lock.pid} is starting or stopping the sandbox ${keptName}; wait for it.`);
  }
  cleanUp.add('release the sandbox’s lock', () => lock.release());
  const state = await readState(dir);
  if (state.kind === 'running' || state.kind === 'broken') {
    throw new Error(
      `A sandbox ${keptName} is still there. Remove it with: npm run sandbox -- down --name ${keptName}`,
    );
  }
  await removeState(dir, state);
  return dir;
}

async function keep(sandbox: Sandbox): Promise<void> {
  try {
    // Recorded first, let go afterwards: at no time does one run that is neither watched nor known.
    await writeState({ handle: sandbox.handle, processes: sandbox.processes });
    await sandbox.detach();
  } catch (error) {
    await sandbox.stop();
    throw error;
  }
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
