import type { FlagValues } from '../../contract/kind-flag.js';
import type { Kind, KindContext, Policy } from '../../contract/kind.js';
import type { AnyObject } from '../../contract/object.js';
import { resourceType } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';
import { render } from '../../synth/render.js';
import { collection } from '../cluster.js';
import type { Cluster } from '../cluster.js';

/** Where a trial takes place: namespaces that nobody else has. */
export interface Site {
  /** Of the custom resource. */
  readonly namespace: string;
  /** Another one, for what a kind shares or finds elsewhere. */
  readonly elsewhere: string;
  /**
   * How often what the kind deletes was made anew in this trial, from 0 on; for names, since the next one of a name may be
   * treated differently.
   */
  readonly round: number;
}

/** What a kind expects to find, and how its operator was started. */
export interface Surroundings {
  /** Namespaced objects, made in this order before the operator starts, each with its status if it has one. @default - none */
  readonly objects?: readonly AnyObject[];
  /** Of the kind, as given on the command line. @default - none is given */
  readonly flags?: FlagValues;
  /** The kind's section of a policy. @default - nothing is restricted */
  readonly policy?: unknown;
}

/** Must give the same for the same site, and as many objects of the same kinds for every other. */
export type MakeSurroundings = (site: Site) => Surroundings;

/** Stands for every site, in what is compared. */
export const ANY_SITE: Site = { namespace: 'namespace', elsewhere: 'elsewhere', round: 0 };

/** What the controllers of a kind are made with there. */
export function contextOf({ flags, policy }: Surroundings): KindContext {
  return { render, ...(flags && { flags }), ...(policy !== undefined && { policy }) };
}

/** The policy of all kinds, of which only this one's section is known. */
export function policyFor({ name }: Kind, { policy }: Pick<Surroundings, 'policy'>): Policy | undefined {
  return policy === undefined ? undefined : { [name]: policy };
}

export function typeOf({ apiVersion, kind }: AnyObject): ResourceType {
  return resourceType({ apiVersion, kind });
}

/** Makes an object as it was written down, in place of none. Its status is written as by whoever is in charge of it. */
export async function make(cluster: Cluster, object: AnyObject): Promise<void> {
  const { status, ...content } = object;
  const type = typeOf(object);
  await cluster.apply(type, content, 'surroundings');
  if (status === undefined) return;
  const { namespace, name } = object.metadata;
  const answer = await cluster.send('PATCH', `${collection(type, namespace)}/${name}/status`, {
    ...{ body: { status }, contentType: 'application/merge-patch+json' },
  });
  if (answer.status !== 200)
    throw new Error(`The status of ${object.kind} ${name} is refused: ${String(answer.body.message)}`);
}
