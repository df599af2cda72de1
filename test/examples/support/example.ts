import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { loadKinds } from '../../../src/cli/config.js';
import type { Condition } from '../../../src/contract/conditions.js';
import type { OwnedKind } from '../../../src/contract/kind.js';
import type { AnyObject, CustomResource } from '../../../src/contract/object.js';
import { render } from '../../../src/render/renderer.js';

export const root = join(import.meta.dirname, '../../..');

type Changes = Readonly<Record<string, unknown>>;

/** An example of a kind of one's own, in a folder of `examples/`. */
export class Example {
  private constructor(
    readonly folder: string,
    readonly kind: OwnedKind,
    readonly sample: CustomResource<Changes>,
  ) {}

  /** @param defaults what the API server fills in */
  static async load(name: string, defaults: Changes = {}): Promise<Example> {
    const folder = join(root, 'examples', name);
    const [kind] = await loadKinds({ builtIn: [], config: join(folder, 'reconstruct.config.mjs') });
    const sample = parse(readFileSync(join(folder, 'sample.yaml'), 'utf8')) as CustomResource<Changes>;
    return new Example(folder, kind as OwnedKind, { ...sample, spec: { ...defaults, ...sample.spec } });
  }

  /** What the sample renders to, with these fields of its spec changed. */
  rendered(changes: Changes = {}): AnyObject[] {
    return render(this.kind, { ...this.sample, spec: { ...this.sample.spec, ...changes } });
  }

  /**
   * The status that the controller plans.
   * @param children what the cluster has of them, by kind; of a kind that isn't here, there is none
   */
  status(
    children: Readonly<Record<string, object>>,
    changes: Changes = {},
  ): Readonly<Record<string, unknown>> {
    const { metadata, spec } = this.sample;
    const cr = {
      ...this.sample,
      metadata: { ...metadata, namespace: 'shop', uid: 'u', generation: 3 },
      spec: { ...spec, ...changes },
    };
    const rendered = render(this.kind, cr);
    const reader = {
      get: () => cr,
      all: () => [],
      controlledBy: (type: { kind: string }) =>
        rendered
          .filter(({ kind }) => kind === type.kind && kind in children)
          .map((object) => ({ ...object, ...children[object.kind] })) as AnyObject[],
      mappedTo: () => [],
      find: () => ({}),
    };
    const plan = this.kind
      .controllers({ render })[0]!
      .reconcile(`shop/${metadata.name}`, reader, new Date(0));
    return plan.conclude([]).status[0]!.status as Readonly<Record<string, unknown>>;
  }

  /** Its condition Ready, in short. */
  ready(children: Readonly<Record<string, object>>, changes: Changes = {}): string {
    const { conditions } = this.status(children, changes) as { conditions: readonly Condition[] };
    const { status, reason, message } = conditions.find(({ type }) => type === 'Ready')!;
    return `${status} ${reason}: ${message}`;
  }

  /** Runs Node in its folder, as its user would. */
  node(args: readonly string[], input = '') {
    const env = { ...process.env, CDK8S_OUTDIR: '', NODE_OPTIONS: '', NODE_TEST_CONTEXT: undefined };
    return spawnSync(process.execPath, args, { cwd: this.folder, env, input, encoding: 'utf8' });
  }
}
