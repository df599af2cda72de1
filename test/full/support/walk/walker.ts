import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import type { AnyObject } from '../../../../src/contract/object.js';
import { applyDefaults } from '../../../../src/synth/defaults.js';
import { services } from '../cluster.js';
import { eventually } from '../eventually.js';
import type { LiveResource, Subject } from '../subject.js';
import { comparable } from './comparable.js';
import { NodePorts } from './node-ports.js';
import { hasRefusedFields } from './rules.js';
import { specSchema } from './shape.js';
import type { Spec } from './shape.js';

/** How a user edits: by `kubectl replace`, or by server-side apply. */
export type Means = 'replace' | 'apply';

/** What a step was, for whoever counts them. */
export interface Step {
  readonly means: Means;
  /** As the API server has stored it, with the node ports of the plan. */
  readonly spec: Spec;
  /** The API server takes the custom resource, but not the Deployment that comes of it. */
  readonly refused: boolean;
}

const FIELD_MANAGER = 'user';

/** Walks one custom resource from spec to spec, and compares its children after each edit with those of a new one. */
export class Walker {
  readonly steps: Step[] = [];
  private readonly live: Named;
  private readonly twinPorts: NodePorts;

  /** @param place 0 for the first walker, 1 for the next */
  constructor(
    private readonly apps: Subject,
    private readonly place: number,
  ) {
    this.live = { name: `walker-${letterOf(place)}`, nodePorts: new NodePorts(2 * place) };
    this.twinPorts = new NodePorts(2 * place + 1);
  }

  get name(): string {
    return this.live.name;
  }

  /** An apply may leave what is not its own, or be refused for it; a replacement has the last word then. */
  async edit(spec: Spec, means: Means): Promise<void> {
    const wanted = applyDefaults(spec, specSchema) as Spec;
    const stored = await this.send(wanted, means);
    if (stored) await this.check(means, stored);
    if (means === 'replace' || (stored && isDeepStrictEqual(stored, wanted))) return;
    await this.send(wanted, 'replace');
    await this.check('replace', wanted);
  }

  /** Once more, after a while. */
  async checkAgain(): Promise<void> {
    const { means, spec } = this.steps.at(-1)!;
    await this.check(means, spec);
  }

  /** The spec that is there then; nothing, where an apply is refused. */
  private async send(spec: Spec, means: Means): Promise<Spec | undefined> {
    const { apps, live } = this;
    const object = manifest(apps, live.name, live.nodePorts.given(spec));
    const answer = means === 'apply' ? await this.apply(object) : await this.replace(object);
    return answer && live.nodePorts.planned(answer.spec as Spec);
  }

  private async apply(object: AnyObject): Promise<AnyObject | undefined> {
    const { status, body } = await this.apps.cluster.send('PATCH', this.path(object), {
      body: object,
      contentType: 'application/apply-patch+yaml',
      query: { fieldManager: FIELD_MANAGER, force: 'true', fieldValidation: 'Strict' },
    });
    if (status === 422) return undefined;
    expect(status, String(body.message)).toBeLessThan(300);
    return body;
  }

  /** Again and again, since the status may be written in between. */
  private async replace(object: AnyObject): Promise<AnyObject> {
    const { cluster } = this.apps;
    return eventually(async () => {
      const found = await cluster.find(this.apps.place(object.metadata.name));
      if (!found) return cluster.create(this.apps.kind.type, object);
      const { resourceVersion } = found.metadata;
      const { status, body } = await cluster.send('PUT', this.path(object), {
        body: { ...object, metadata: { ...object.metadata, resourceVersion } },
        query: { fieldManager: FIELD_MANAGER, fieldValidation: 'Strict' },
      });
      expect(status, String(body.message)).toBeLessThan(300);
      return body;
    });
  }

  private path({ metadata }: AnyObject): string {
    const { apiVersion, plural } = this.apps.kind.type;
    return `/apis/${apiVersion}/namespaces/${this.apps.namespace}/${plural}/${metadata.name}`;
  }

  private async check(means: Means, spec: Spec): Promise<void> {
    const name = `twin-${letterOf(this.place)}-${this.steps.length}`;
    const twin = { name, nodePorts: this.twinPorts };
    await this.apps.create(name, twin.nodePorts.given(spec));
    const refused = await eventually(
      async () => {
        const [fresh, live] = [await this.seen(twin, spec), await this.seen(this.live, spec)];
        requireEqual(live, fresh);
        return fresh.refused;
      },
      { intervalMilliseconds: 100 },
    );
    expect(refused, JSON.stringify(spec)).toBe(hasRefusedFields(spec));
    this.steps.push({ means, spec, refused });
    await this.discard(name);
  }

  /** What has come of the present generation. */
  private async seen({ name, nodePorts }: Named, spec: Spec): Promise<Seen> {
    const { apps } = this;
    const cr = await apps.get(name);
    expect(cr.status?.observedGeneration, `${name} is behind`).toBe(cr.metadata.generation);
    const uid = cr.metadata.uid!;
    const children = await Promise.all(
      apps.kind.children.map(async (type) => {
        const child = await apps.cluster.find(apps.childPlace(type, name));
        const { kind } = type;
        return [kind, child && comparable({ ...child, kind }, { name, uid, spec, nodePorts })] as const;
      }),
    );
    return { refused: isRefusal(cr), children: Object.fromEntries(children) };
  }

  /** The Service at once, so that its node ports are free; what else there is, the garbage collector takes. */
  private async discard(name: string): Promise<void> {
    await this.apps.delete(name);
    await this.apps.cluster.delete(this.apps.childPlace(services, name), { mayBeMissing: true });
  }
}

interface Named {
  readonly name: string;
  readonly nodePorts: NodePorts;
}

interface Seen {
  readonly refused: boolean;
  readonly children: Readonly<Record<string, unknown>>;
}

/** Where the Deployment is refused, what is there of it stays, and nothing is pruned; the rest is applied. */
function requireEqual(live: Seen, fresh: Seen): void {
  expect(live.refused).toBe(fresh.refused);
  if (!fresh.refused) expect(live.children).toEqual(fresh.children);
  else expect(live.children).toMatchObject(JSON.parse(JSON.stringify(fresh.children)) as object);
}

function isRefusal({ status }: LiveResource): boolean {
  const stalled = status?.conditions?.find(({ type }) => type === 'Stalled');
  return stalled?.status === 'True' && stalled.reason === 'Invalid';
}

function manifest(apps: Subject, name: string, spec: Spec): AnyObject {
  const { apiVersion, kind } = apps.kind.type;
  return { apiVersion, kind, metadata: { name, namespace: apps.namespace }, spec };
}

function letterOf(place: number): string {
  return String.fromCharCode(97 + place);
}
