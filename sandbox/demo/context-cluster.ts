import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeYaml } from '#contract/yaml.js';
import type { DemoCluster, Stage } from './cluster.js';
import { crdName, installCrd } from './crd.js';
import { UnreachableError } from './failure.js';
import { Kubectl } from './kubectl.js';

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
    install: () => install(clusterWide, namespace, stage),
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

async function install(kubectl: Kubectl, namespace: string, { show, cleanUp }: Stage): Promise<void> {
  const last = kubectl.uninterrupted();
  const { stdout: present } = await kubectl.run('get', 'crd', crdName, '--ignore-not-found', '-o', 'name');
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
      const byHand = kubectl.typed(['delete', 'crd', crdName]);
      cleanUp.add(`remove the CRD ${crdName}`, () => removeCrd(last, show), byHand);
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
  const { stdout } = await kubectl.run('get', 'crd', crdName, '--ignore-not-found', '-o', 'name');
  if (stdout === '') return;
  const others = await kubectl.run('get', crdName, '--all-namespaces', '-o', 'name');
  if (others.stdout === '') await kubectl.run('delete', 'crd', crdName, '--timeout=60s');
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
