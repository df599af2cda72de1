import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startSandbox } from '../../sandbox/control-plane.js';
import type { Sandbox } from '../../sandbox/control-plane.js';
import { repoFolder } from '../../sandbox/paths.js';
import { commandsOf, operatingPages } from './support/documented.js';
import { eventually } from './support/eventually.js';
import { Shell } from './support/shell.js';

/** What only reads, and needs neither pods that run nor a name that the reader fills in. */
const READS = /^(?:kubectl (?:get|describe)|reconstruct status)\b(?!.*\b[A-Z]{3,})/;

/** Not tried: what they read is there only once an operator is installed and runs, or with what others install. */
const ABSENT: readonly string[] = [
  'kubectl get configmap reconstruct-policy -n reconstruct-system -o yaml',
  'kubectl get lease reconstruct -n reconstruct-system -o yaml',
  'kubectl get servicemonitors -n reconstruct-system',
];

const CRDS = {
  appservice: 'crds/appservices.kosmos.io.yaml',
  jobwatcher: 'crds/jobwatchers.batch.my.github.com.yaml',
  streamingress: 'crds/streamingresses.nginx-stream.jeffthecoder.xyz.yaml',
} as const;
type Kind = keyof typeof CRDS;

/** A page of one kind is read where that is installed; any other has to do where only AppService is. */
function kindOf(page: string): Kind {
  if (page.includes('Stream')) return 'streamingress';
  return page.includes('Job') ? 'jobwatcher' : 'appservice';
}

let sandbox: Sandbox;
let home: string;
let shell: Shell;

beforeAll(async () => {
  sandbox = await startSandbox({ apiOnly: true });
  home = await mkdtemp(join(tmpdir(), 'operating-'));
  const root = repoFolder();
  const path = [dirname(process.execPath), join(root, 'node_modules/.bin'), dirname(sandbox.kubectlPath)];
  const env = {
    ...process.env,
    KUBECONFIG: sandbox.adminKubeconfig,
    KUBECACHEDIR: join(home, 'kubectl-cache'),
    PATH: [...path, process.env.PATH].join(delimiter),
  };
  shell = new Shell({ folder: root, env });
});
afterAll(async () => {
  await sandbox.stop();
  await rm(home, { recursive: true });
});

async function done(command: string): Promise<void> {
  const { code, output } = await shell.type(command);
  expect(code, output).toBe(0);
}

const pages = operatingPages();

test('there are such commands, and those that are not tried', () => {
  const texts = pages.flatMap(commandsOf).map(({ text }) => text);
  expect(texts.filter((text) => READS.test(text)).length).toBeGreaterThan(10);
  expect(texts).toEqual(expect.arrayContaining([...ABSENT]));
});

describe.each(Object.keys(CRDS) as Kind[])('where %s is installed alone', (kind) => {
  const commands = pages
    .filter((page) => kindOf(page) === kind)
    .flatMap(commandsOf)
    // Where nothing is wrong, what is searched for isn't there.
    .map(({ text }) => text.replace(/ \| (?:grep|tail).*/, ''))
    .filter((text) => READS.test(text) && !ABSENT.includes(text));

  beforeAll(async () => {
    await done(`kubectl apply -f ${CRDS[kind]}`);
    await eventually(() => done(`kubectl get ${kind} -A`));
  });
  afterAll(() => done(`kubectl delete -f ${CRDS[kind]}`));

  test.for([...new Set(commands)])('%s', done);
});
