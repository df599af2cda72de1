import { messageOf, OperatorError } from '../contract/error.js';
import { composedNames, isGenerated } from '../values/generated.js';
import type { Rendered } from '../contract/kind.js';
import {
  childrenFieldManager,
  GENERATED_ANNOTATION,
  recordedFieldManager,
  statusFieldManager,
} from '../contract/names.js';
import { contentHash } from '../values/json.js';
import { controllerOf, objectId, splitKey } from '../contract/object.js';
import type { AnyObject, CustomResource } from '../contract/object.js';
import type { ResourceType } from '../contract/resource.js';
import { readinessIn } from '../author/order.js';
import { waitOf } from '../values/readiness.js';
import { renderObserving } from '../render/settling.js';
import { asRecorded } from '../values/created.js';
import { observedOf, ownerUidOf, recordOf, rememberedOf, wasAppliedBy } from '../values/projections.js';
import { APPLY } from '../client/api.js';
import type { ApiRequest, ApiResponse } from '../client/transport.js';
import type { Cluster, Place } from './cluster.js';
import { generatedOf, kept, rendered, renderedSamples } from './tested-kind.js';
import type { TestedKind } from './tested-kind.js';
import { describeWrite } from './wire.js';

type Values = Readonly<Record<string, string>>;

/** Members of a trial that its audit needs. */
export interface AuditedTrial {
  readonly run: TestedKind & { readonly cluster: Cluster };
  place(name?: string): Place;
  list(types: readonly ResourceType[]): Promise<AnyObject[]>;
  objects(): Promise<AnyObject[]>;
}

/** Writes of all operators of a trial, and the first that breaks a rule which holds at any time. */
export class WriteAudit {
  /** Writes that were answered, without dry runs, as in `PATCH configmaps/web`. */
  readonly writes: string[] = [];
  broken: string | undefined;
  /** Applies of what depends on other objects. */
  dependents = 0;
  private readonly isOrdered: boolean;
  /** Rendering that the last apply was of, by the name of the custom resource. */
  private readonly last = new Map<string, Rendered>();
  /** Hash of the generated values, by Secret and rotation. */
  private readonly made = new Map<string, string>();
  private readonly values = new Set<string>();

  constructor(private readonly trial: AuditedTrial) {
    this.isOrdered = isOrdered(trial.run);
  }

  async pass(request: ApiRequest, send: () => Promise<ApiResponse>): Promise<ApiResponse> {
    const { query, body = {} } = request;
    if (request.method === 'GET' || query?.dryRun !== undefined || 'dryRun' in (body as object))
      return send();
    const what = describeWrite(request);
    try {
      if (this.isOrdered && request.contentType === APPLY) this.break(await this.tooEarly(body as AnyObject));
    } catch (error) {
      this.break(messageOf(error));
    }
    const sent = JSON.stringify(body);
    const answer = await send();
    this.writes.push(what);
    const object = answer.body as AnyObject;
    if (answer.status < 300 && object.kind === 'Secret' && isGenerated(object))
      this.break(this.remade(object));
    else if ([...this.values].some((value) => sent.includes(value)))
      this.break(`a generated value stands in ${what}`);
    return answer;
  }

  private break(rule: string | undefined): void {
    this.broken ??= rule;
  }

  /** Returns which object is applied before those are ready that it depends on, judged by what there is now. */
  private async tooEarly(object: AnyObject): Promise<string | undefined> {
    const of = recordOf(object)?.of;
    const owner = of ? splitKey(of.key).name : controllerOf(object)?.name;
    if (owner === undefined) return undefined;
    const cr = await this.trial.run.cluster.find<CustomResource>(this.trial.place(owner));
    const now = cr && (await renderingOf(this.trial, cr).catch(ifRefused));
    const present = now && asApplied(object, now);
    // What was rendered of an earlier state goes by that one.
    if (!present) return undefined;
    const before = now.dependencies?.get(present);
    if (before) this.dependents++;
    const readinessOf = readinessIn(before ? await this.trial.objects() : []);
    const wait = waitOf(present, before ?? [], readinessOf);
    const last = this.last.get(owner);
    if (!wait) {
      this.last.set(owner, now);
      return undefined;
    }
    // So does what is rendered of both, where the operator may not know of the change yet.
    const earlier = last && asApplied(object, last);
    if (earlier && !waitOf(earlier, last.dependencies?.get(earlier) ?? [], readinessOf)) return undefined;
    return `${object.kind} ${object.metadata.name} is applied while ${wait.ref.kind} ${wait.ref.name} isn't ready (${wait.readiness.reason})`;
  }

  /** Returns which rule a write of generated values breaks: they are replaced for a rotation alone, and then all of them. */
  private remade(secret: AnyObject & { readonly data?: Values }): string | undefined {
    const { metadata, data = {} } = secret;
    const id = `${metadata.uid} ${metadata.annotations?.[GENERATED_ANNOTATION] ?? ''}`;
    // Texts follow the custom resource, and what they keep secret are the values in them.
    const texts = composedNames(secret);
    const values = Object.entries(data).flatMap(([name, value]) => (texts.includes(name) ? [] : value));
    // Certificates follow their names, too.
    const lasting = values.filter(
      (value) => !Buffer.from(value, 'base64').toString().startsWith('-----BEGIN '),
    );
    const [before, hash] = [this.made.get(id), contentHash(lasting)];
    this.made.set(id, hash);
    const isLeft = before === undefined && values.some((value) => this.values.has(value));
    for (const value of values)
      this.values.add(value).add(JSON.stringify(Buffer.from(value, 'base64').toString()).slice(1, -1));
    if (before !== undefined && before !== hash)
      return `the values in Secret ${metadata.name} are replaced without a rotation`;
    return isLeft ? `a rotation leaves values in Secret ${metadata.name}` : undefined;
  }
}

/** Returns the object of a rendering as which this one is applied, if it is. */
function asApplied(object: AnyObject, rendered: Rendered): AnyObject | undefined {
  const hash = recordOf(object)?.hash;
  return rendered.find(
    (one) => objectId(one) === objectId(object) && contentHash(asRecorded(one, object)) === hash,
  );
}

/** Reports whether something in the samples depends on another object. */
export function isOrdered(tested: TestedKind): boolean {
  return renderedSamples(tested).some(({ dependencies }) => dependencies !== undefined);
}

/**
 * Renders a custom resource of what there is now, as an operator that knows all of it.
 * @throws OperatorError where it can't be rendered
 */
export async function renderingOf(trial: AuditedTrial, cr: CustomResource): Promise<Rendered> {
  const { run } = trial;
  if (!('each' in run.kind.rendering)) return [];
  const { references: referred, observes, children } = run.kind.rendering.each;
  const types = [...run.types, ...(referred?.lookups ?? []).map(({ type }) => type)];
  const references = await trial.list(types);
  const { generated } = generatedOf(run, cr, references);
  const status = rememberedOf({ ...cr }, statusFieldManager(run.kind.type.kind));
  const inputs = { references, status, ...(generated && { generated }) };
  const { uid = '' } = cr.metadata;
  const controlled = references.filter((object) => ownerUidOf(object) === uid);
  if (!observes) return rendered(run, cr, inputs);
  const { kind } = run.kind.type;
  const managers = [childrenFieldManager(kind), recordedFieldManager(kind, uid)];
  const own = controlled.filter((object) => managers.some((manager) => wasAppliedBy(manager, object)));
  return renderObserving(cr, { controlled, own, types: children }, (found, isCurrent) => {
    const live = found.flatMap((one) => kept(run, one) ?? []);
    const observed = observedOf(live, isCurrent);
    return rendered(run, cr, { ...inputs, observed });
  }).rendered;
}

/** Returns nothing for what can't be rendered. */
export function ifRefused(error: unknown): undefined {
  if (!(error instanceof OperatorError)) throw error;
}
