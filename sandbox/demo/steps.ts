import { readFile } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import { readYaml, writeYaml } from '#values/yaml.js';
import type { Scene } from './stage.js';
import { appServices } from './kubectl.js';
import { childSelector, inTime, StepFailure, untilReady } from './observe.js';
import { formatTime, table } from './show.js';

/** A state that the Deployment was in. */
export interface Version {
  /** Cells as kubectl prints them: generation, replicas, image, label. */
  readonly cells: readonly string[];
  /** Time at which it came, in milliseconds since the history began. */
  readonly at: number;
}

/** The columns of a version and where their values lie in a Deployment. */
const columns = [
  ['GENERATION', '.metadata.generation'],
  ['REPLICAS', '.spec.replicas'],
  ['IMAGE', '.spec.template.spec.containers[0].image'],
  ['TEAM', '.metadata.labels.team'],
] as const;

/** Every version of the sample's Deployment since the history was begun, as a watch delivers them. */
export class History {
  readonly #versions: Version[] = [];
  #began = Date.now();

  /** Takes a line of kubectl. Headers, and versions that differ in nothing that is shown, add nothing. */
  add(line: string, now = Date.now()): void {
    const cells = line.trim().split(/\s+/);
    if (cells[0] === columns[0][0] || cells.length !== columns.length) return;
    if (this.#versions.at(-1)?.cells.join() === cells.join()) return;
    if (this.#versions.length === 0) this.#began = now;
    this.#versions.push({ cells, at: now - this.#began });
  }

  get last(): Version | undefined {
    return this.#versions.at(-1);
  }

  /** The first version with that in a column, and the first one later that has `right` there again. */
  repair(
    column: 'IMAGE' | 'REPLICAS',
    wrong: string,
    right: string,
  ): readonly [Version, Version] | undefined {
    const index = columns.findIndex(([name]) => name === column);
    const edited = this.#versions.findIndex(({ cells }) => cells[index] === wrong);
    const repaired = this.#versions.slice(edited + 1).find(({ cells }) => cells[index] === right);
    const broken = this.#versions[edited];
    return broken && repaired ? [broken, repaired] : undefined;
  }

  table(): string {
    const rows = this.#versions.map(({ cells, at }) => [...cells, formatTime(at)]);
    return table([[...columns.map(([name]) => name), 'SEEN AFTER'], ...rows]);
  }
}

/** Begins the history of the Deployment. @returns it, and what ends it */
export async function followDeployment(scene: Scene): Promise<[History, () => void]> {
  const history = new History();
  const { kubectl } = scene.cluster;
  const output = `custom-columns=${columns.map(([name, path]) => `${name}:${path}`).join(',')}`;
  const args = ['get', 'deployment', scene.sample.metadata.name, '--watch', '-o', output];
  kubectl.show(args, '(in the background)');
  const end = kubectl.follow(args, (line) => {
    history.add(line);
  });
  try {
    await inTime(scene, 'the watch to show the Deployment', () =>
      history.last ? { found: true } : { seen: 'nothing yet' },
    );
  } catch (error) {
    end();
    throw error;
  }
  return [history, end];
}

/** A part of the demo. */
export interface Step {
  readonly title: string;
  /** **Errors**: when what it shows was not seen. */
  run(scene: Scene): Promise<void>;
}

/**
 * Time that the garbage collector may take for owners of a kind that is new: it looks for kinds every 30 s, and then comes
 * back to children whose owner it did not know after as long as it has waited before.
 */
const collectionMilliseconds = 120_000;

/** The size that the sample is changed to. */
const newSize = 3;

/** Steps that follow once the controller runs. */
export function steps(sampleFile: string): readonly Step[] {
  return [
    {
      title: 'An AppService is applied: children appear, pods become ready',
      run: (s) => apply(s, sampleFile),
    },
    { title: 'Its size changes: a pod is added', run: resize },
    { title: 'The Deployment is edited by hand: it is corrected', run: editByHand },
    { title: 'The Deployment is deleted: it comes back', run: deleteDeployment },
    { title: 'The AppService is deleted: everything goes', run: deleteAll },
  ];
}

async function apply(scene: Scene, sampleFile: string): Promise<void> {
  const { show, cluster, sample } = scene;
  const { kubectl } = cluster;
  const { name } = sample.metadata;
  show.say('The sample that was rendered before is applied. Now the controller renders it.');
  // A copy with what this cluster needs changed.
  if (isAbsolute(sampleFile)) show.output(await readFile(sampleFile, 'utf8'));
  await kubectl.demonstrate('apply', '-f', sampleFile);
  const applied = Date.now();
  await inTime(scene, 'a Deployment and a Service of the same name', async () => {
    const found = await Promise.all([kubectl.get('deployment', name), kubectl.get('service', name)]);
    if (found.every((each) => each !== undefined)) return { found: true };
    return {
      seen: `Deployment: ${found[0] ? 'there' : 'missing'}, Service: ${found[1] ? 'there' : 'missing'}`,
    };
  });
  show.seen(
    `The controller has made a Deployment and a Service (seen after ${formatTime(Date.now() - applied)}).`,
  );
  await untilReady(scene, sample.spec.size);
  show.seen(`All ${sample.spec.size} pods are ready (seen after ${formatTime(Date.now() - applied)}).`);
  const listed = await kubectl.demonstrate('get', `${appServices},deploy,svc,pods`);
  if (listed.includes('service/kubernetes ')) show.say('(service/kubernetes is the API server’s own.)');
  show.say('The status of the AppService shows its state to people and tools:');
  const args = ['get', appServices, name, '-o', 'yaml'];
  const { status } = readYaml((await kubectl.run(...args)).stdout) as { status: unknown };
  kubectl.show(args, `...\n${writeYaml({ status })}`);
}

async function resize(scene: Scene): Promise<void> {
  const { show, cluster, sample } = scene;
  show.say(`One field of the AppService changes, the size from ${sample.spec.size} to ${newSize}.`);
  const patch = JSON.stringify({ spec: { size: newSize } });
  await cluster.kubectl.demonstrate('patch', appServices, sample.metadata.name, '--type=merge', '-p', patch);
  const patched = Date.now();
  await untilReady(scene, newSize);
  show.seen(`The new pod is ready too (seen after ${formatTime(Date.now() - patched)}).`);
  await cluster.kubectl.demonstrate('get', `${appServices},pods`);
}

async function editByHand(scene: Scene): Promise<void> {
  const { show, cluster, sample } = scene;
  const { name } = sample.metadata;
  const wrongImage = sample.spec.image === 'nginx:1.25' ? 'nginx:1.26' : 'nginx:1.25';
  show.say('A watch writes down every version of the Deployment, since the next ones will not last long.');
  const [history, end] = await followDeployment(scene);
  try {
    show.say('A user puts a label on the Deployment, then another image into it, and then scales it to 5.');
    await cluster.kubectl.demonstrate('label', 'deployment', name, 'team=shop');
    await cluster.kubectl.demonstrate('set', 'image', `deployment/${name}`, `${name}=${wrongImage}`);
    await repaired(scene, history, 'IMAGE', wrongImage, sample.spec.image);
    await cluster.kubectl.demonstrate('scale', 'deployment', name, '--replicas=5');
    await repaired(scene, history, 'REPLICAS', '5', String(newSize));
  } finally {
    end();
  }
  show.say('Every version of the Deployment that there was:');
  show.output(history.table());
  await untilReady(scene, newSize);
  const team = (await cluster.kubectl.get('deployment', name))?.metadata.labels?.team;
  if (team !== 'shop') throw new StepFailure('the label team=shop to stay', `team=${team ?? 'is gone'}`);
  show.seen(
    'The label stays, since the AppService doesn’t set it: the controller owns the fields that it has written, ' +
      'and no more.',
  );
}

async function repaired(
  scene: Scene,
  history: History,
  column: 'IMAGE' | 'REPLICAS',
  wrong: string,
  right: string,
): Promise<void> {
  const what = column.toLowerCase();
  const [edited, again] = await inTime(scene, `${what} ${wrong}, and then ${right} again`, () => {
    const found = history.repair(column, wrong, right);
    return found ? { found } : { seen: `the Deployment as ${history.last?.cells.join(' ') ?? 'missing'}` };
  });
  scene.show.seen(`${what}: ${wrong} became ${right} again within ${formatTime(again.at - edited.at)}.`);
}

async function deleteDeployment(scene: Scene): Promise<void> {
  const { show, cluster, sample } = scene;
  const { name } = sample.metadata;
  const { kubectl } = cluster;
  const old = (await kubectl.get('deployment', name))?.metadata.uid;
  show.say('A user deletes the Deployment.');
  await kubectl.demonstrate('delete', 'deployment', name);
  const deleted = Date.now();
  const uid = await inTime(scene, 'a new Deployment of the same name', async () => {
    const found = (await kubectl.get('deployment', name))?.metadata.uid;
    if (found !== undefined && found !== old) return { found };
    return { seen: found === undefined ? 'there is none' : 'it is still the old one' };
  });
  show.seen(
    `There is a new one (seen after ${formatTime(Date.now() - deleted)}): ${uid}, once ${old ?? ''}.`,
  );
  await untilReady(scene, newSize);
  show.seen(`Its ${newSize} pods are ready (seen after ${formatTime(Date.now() - deleted)}).`);
  await kubectl.demonstrate('get', 'deploy,pods');
}

async function deleteAll(scene: Scene): Promise<void> {
  const { show, cluster, sample } = scene;
  const { kubectl } = cluster;
  show.say(
    'The user deletes the AppService. What belongs to it bears an owner reference, so Kubernetes itself removes it; ' +
      'the controller need not even run.',
  );
  await kubectl.demonstrate('delete', appServices, sample.metadata.name);
  const deleted = Date.now();
  const patience = Math.max(cluster.deadlineMilliseconds, collectionMilliseconds);
  await inTime(
    scene,
    'Deployment, Service and pods to be gone',
    async () => {
      const left = await kubectl.list('deploy,rs,svc,pods', childSelector(scene));
      return left.length === 0
        ? { found: true }
        : { seen: `still there: ${left.map(({ kind, metadata }) => `${kind} ${metadata.name}`).join(', ')}` };
    },
    patience,
  );
  show.seen(`Everything is gone (seen after ${formatTime(Date.now() - deleted)}).`);
  await kubectl.demonstrate('get', `${appServices},deploy,svc,pods`, '-l', childSelector(scene));
}
