import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { repoFolder } from '../../sandbox/paths.js';
import { eventually } from './cluster.js';
import { bundle, packed } from './operator.js';

const CONFIG = `import { note } from './src/kind.ts';
export default { kinds: [note] };
`;

const KIND = `import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineKind } from 'cdk8s-reconstruct';
import type { CustomResourceProps } from 'cdk8s-reconstruct';

class Note extends Construct {
  constructor(scope: Construct, id: string, { metadata: { name }, spec }: CustomResourceProps<{ text: string; by?: string }>) {
    super(scope, id);
    new ApiObject(this, 'Text', {
      apiVersion: 'v1', kind: 'ConfigMap', metadata: { name },
      data: { text: \`Hello \${spec.text}\` },
    });
  }
}

export const note = defineKind({
  crd: new URL('../crd.yaml', import.meta.url),
  construct: Note,
  children: [{ apiVersion: 'v1', kind: 'ConfigMap' }],
});
`;

/** The CRD of Note, with these fields of type string beside `text`. */
export function noteCrd(...fields: readonly string[]): string {
  const properties = Object.fromEntries(['text', ...fields].map((name) => [name, { type: 'string' }]));
  const status = {
    type: 'object',
    'x-kubernetes-preserve-unknown-fields': true,
    default: { observedGeneration: -1 },
  };
  const schema = {
    type: 'object',
    required: ['spec'],
    properties: { spec: { type: 'object', required: ['text'], properties }, status },
  };
  return stringify({
    ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
    metadata: { name: 'notes.dev.example.com' },
    spec: {
      ...{
        group: 'dev.example.com',
        scope: 'Namespaced',
        names: { kind: 'Note', plural: 'notes', singular: 'note' },
      },
      versions: [
        {
          ...{ name: 'v1', served: true, storage: true, subresources: { status: {} } },
          schema: { openAPIV3Schema: schema },
        },
      ],
    },
  });
}

export function noteSample(name: string, spec: object): string {
  return stringify({ apiVersion: 'dev.example.com/v1', kind: 'Note', metadata: { name }, spec });
}

/** A project with a kind of its own, in which `reconstruct dev` is run as it is built. */
export class DevProject {
  private readonly folder = mkdtempSync(join(tmpdir(), 'dev-project-'));
  /** Where the sandbox has its folders. */
  private readonly temporary = mkdtempSync(join(tmpdir(), 'dev-'));
  private child: ChildProcess | undefined;
  output = '';

  constructor() {
    const root = repoFolder();
    for (const name of ['cdk8s', 'constructs']) this.link(join(root, 'node_modules', name), name);
    this.link(packed, 'cdk8s-reconstruct');
    this.write('package.json', '{ "type": "module" }');
    this.write('reconstruct.config.mjs', CONFIG);
    this.write('src/kind.ts', KIND);
    this.write('crd.yaml', noteCrd());
    this.write('samples/hello.yaml', noteSample('hello', { text: 'world' }));
  }

  start(): void {
    this.output = '';
    this.child = spawn(process.execPath, [bundle, 'dev'], {
      ...{ cwd: this.folder, stdio: ['ignore', 'pipe', 'pipe'] },
      env: { ...process.env, TMPDIR: this.temporary },
    });
    for (const stream of [this.child.stdout, this.child.stderr])
      stream?.on('data', (chunk: Buffer) => (this.output += chunk.toString()));
  }

  write(file: string, text: string): void {
    mkdirSync(dirname(join(this.folder, file)), { recursive: true });
    writeFileSync(join(this.folder, file), text);
  }

  edit(file: string, from: string, to: string): void {
    this.write(file, readFileSync(join(this.folder, file), 'utf8').replace(from, to));
  }

  remove(file: string): void {
    rmSync(join(this.folder, file));
  }

  /** Waits until it has told this since a position in its output. */
  async told(text: string, from = 0): Promise<void> {
    await eventually(() => {
      if (!this.output.slice(from).includes(text))
        throw new Error(`It hasn't told "${text}":\n${this.output}`);
    });
  }

  /** Runs `kubectl` as it says. */
  async kubectl(program: string, ...args: readonly string[]): Promise<string> {
    const kubeconfig = /export KUBECONFIG=(\S+)/.exec(this.output)?.[1];
    const env = { ...process.env, KUBECONFIG: kubeconfig, KUBECACHEDIR: join(this.temporary, 'kubectl') };
    const { stdout } = await promisify(execFile)(program, args, { env });
    return stdout;
  }

  /** @returns how it ends: the exit code, or the signal */
  async signal(name: NodeJS.Signals): Promise<number | string | null> {
    const ended = once(this.child!, 'exit') as Promise<[number | null, string | null]>;
    this.child!.kill(name);
    const [code, signal] = await ended;
    return code ?? signal;
  }

  /** What there is of it on this machine: processes that name its folders, and files. */
  async left(): Promise<string[]> {
    const { stdout } = await promisify(execFile)('ps', ['-A', '-ww', '-o', 'pid=,stat=,args=']);
    const isIts = (line: string): boolean => line.includes(this.temporary) && !/^\s*\d+\s+Z/.test(line);
    const files = readdirSync(this.temporary).filter((name) => name !== 'kubectl');
    return [...stdout.split('\n').filter(isIts), ...files];
  }

  async close(): Promise<void> {
    const { child } = this;
    if (child && child.exitCode === null && child.signalCode === null) await this.signal('SIGTERM');
    for (const folder of [this.folder, this.temporary]) rmSync(folder, { recursive: true });
  }

  private link(target: string, name: string): void {
    mkdirSync(join(this.folder, 'node_modules'), { recursive: true });
    symlinkSync(target, join(this.folder, 'node_modules', name));
  }
}
