import type { CustomResourceDefinition } from '../contract/crd.js';
import { OperatorError } from '../contract/error.js';
import type { KindFlag } from '../contract/kind-flag.js';
import { objectId, objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { definitionType, nameOf, typeOf } from './cluster.js';
import type { Cluster, Tell } from './cluster.js';
import type { Given } from './command-in-use.js';
import { refuseLosses } from './losses.js';
import { installManifests } from './manifests.js';
import { INSTALL_MANAGER } from './names.js';
import { installedIn, isHelms, isInstalled, isOf, removalOf, withoutInstallLabels } from './ours.js';
import type { Installed } from './ours.js';
import { optionsInUse } from './options-in-use.js';
import { refuseOverlap } from './overlap.js';
import type { InstallProps } from './props.js';
import { isUnchanged } from './unchanged.js';

interface Step {
  readonly object: AnyObject;
  readonly present: AnyObject | undefined;
}

/** How an installation is asked for, beside what it is to be. */
export interface InstallRequest {
  /** What an installation that is there has, and this one hasn't, is dropped. @default false */
  readonly replace?: boolean;
  /** Flags of kinds that may be in use. @default - those of the kinds */
  readonly flags?: readonly KindFlag[];
  /** For commands that are proposed. @default - nothing */
  readonly given?: Given;
  /** Rejects where CRDs that are there must not become what they are to be. @default - any change is made */
  readonly checkDefinitions?: (changes: readonly DefinitionChange[]) => Promise<void>;
}

/** A CustomResourceDefinition as the cluster has it, and as it is about to be applied. */
export interface DefinitionChange {
  readonly present: PresentDefinition;
  readonly next: CustomResourceDefinition;
}

type PresentDefinition = CustomResourceDefinition & {
  readonly status?: { readonly storedVersions?: readonly string[] };
};

/**
 * Makes the cluster hold this installation, and nothing of one with other options.
 *
 * **Guarantees.** What others have made isn't touched; but for a CRD of the same name, which is brought up to date and
 * remains theirs.
 * Nothing is written where something is in the way. CRDs are served before anything needs them. Done twice, the second
 * time changes nothing.
 *
 * @throws OperatorError `AlreadyInstalled`, `OwnershipConflict`, `OptionsLeftOut`, and whatever the cluster refuses with
 */
export async function applyInstallation(
  props: InstallProps,
  cluster: Cluster,
  tell: Tell,
  {
    replace = false,
    flags = props.kinds.flatMap((kind) => kind.flags ?? []),
    given = {},
    checkDefinitions,
  }: InstallRequest = {},
): Promise<void> {
  const objects = installManifests(props);
  await refuseOverlap(props, cluster, { flags, given });
  const steps = await stepsFor(objects, cluster);
  refuseForeign(props.namespace, steps);
  const installed = await installedIn(props.namespace, cluster, tell);
  const present = installed.map(({ object }) => object);
  if (!replace) refuseLosses(optionsInUse(props.namespace, present, flags), present, props, given);
  const isDefinition = ({ object: { kind } }: Step): boolean => kind === definitionType.kind;
  await checkDefinitions?.(
    steps.filter(isDefinition).flatMap(({ object, present: there }) =>
      there
        ? [
            {
              present: there as unknown as PresentDefinition,
              next: object as unknown as CustomResourceDefinition,
            },
          ]
        : [],
    ),
  );
  const last = steps.findLastIndex(isDefinition);
  for (const [index, step] of steps.entries()) {
    await applyStep(step, props.namespace, cluster, tell);
    if (index === last) await established(steps.filter(isDefinition), cluster);
  }
  await removeFormer(objects, installed, cluster, tell);
}

/** What is being deleted is waited for: it can't be kept. */
async function stepsFor(objects: readonly AnyObject[], cluster: Cluster): Promise<readonly Step[]> {
  let steps: readonly Step[] = [];
  await cluster.until(async () => {
    steps = await Promise.all(objects.map((object) => stepFor(object, cluster)));
    const going = steps.find(({ present }) => present?.metadata.deletionTimestamp !== undefined);
    return going ? `${nameOf(going.object)}, which is being deleted, is gone` : '';
  });
  return steps;
}

async function stepFor(object: AnyObject, cluster: Cluster): Promise<Step> {
  const { namespace, name } = object.metadata;
  return { object, present: await cluster.find(typeOf(object), objectKey(namespace, name)) };
}

/** Others' namespaces are used as they are, and CRDs have one name for all. */
function mayBeForeign({ kind }: AnyObject): boolean {
  return kind === 'Namespace' || kind === definitionType.kind;
}

function refuseForeign(namespace: string, steps: readonly Step[]): void {
  const foreign = steps.find(
    ({ object, present }) => present && !mayBeForeign(object) && !isOf(namespace, present),
  );
  if (!foreign) return;
  const what = `${nameOf(foreign.object)} is there and was made by`;
  const message =
    foreign.present && isHelms(foreign.present)
      ? `${what} Helm: change it with "helm upgrade", or remove it first with "${removalOf(foreign.present)}"`
      : `${what} somebody else: remove it, or install into another namespace with --namespace`;
  throw new OperatorError({ reason: 'OwnershipConflict', message });
}

async function applyStep(
  { object, present }: Step,
  namespace: string,
  cluster: Cluster,
  tell: Tell,
): Promise<void> {
  if (object.kind === 'Namespace' && present && !isOf(namespace, present)) {
    tell(`${nameOf(object)} left as it is`);
    return;
  }
  const uid = present?.metadata.uid;
  // Labelled, it would go with ours.
  const intent = present && isForeignDefinition(present) ? withoutInstallLabels(object) : object;
  // What goes meanwhile isn't brought back as something else.
  const body = uid === undefined ? intent : { ...intent, metadata: { ...intent.metadata, uid } };
  const applied = await cluster.apply(typeOf(object), body, { fieldManager: INSTALL_MANAGER, force: true });
  const same = present !== undefined && isUnchanged(present, applied.object);
  tell(`${nameOf(object)} ${applied.created ? 'created' : same ? 'unchanged' : 'configured'}`);
}

function isForeignDefinition(present: AnyObject): boolean {
  return present.kind === definitionType.kind && !isInstalled(present);
}

async function established(definitions: readonly Step[], cluster: Cluster): Promise<void> {
  const names = definitions.map(({ object }) => object.metadata.name);
  await cluster.until(async () => {
    const found = await Promise.all(names.map((name) => cluster.find(definitionType, name)));
    const waiting = names.filter((_, index) => !isEstablished(found[index]));
    return waiting.length === 0 ? '' : `the API server serves ${waiting.join(', ')}`;
  });
}

function isEstablished(crd: AnyObject | undefined): boolean {
  // Of a CRD that has just been made, it is null.
  const { conditions } = (crd?.status ?? {}) as {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[] | null;
  };
  return (conditions ?? []).some(({ type, status }) => type === 'Established' && status === 'True');
}

/** What an earlier installation with other options had: rights above all. */
async function removeFormer(
  objects: readonly AnyObject[],
  installed: readonly Installed[],
  cluster: Cluster,
  tell: Tell,
): Promise<void> {
  const wanted = new Set(objects.map(objectId));
  for (const { type, object } of installed) {
    if (wanted.has(objectId(object))) continue;
    await cluster.delete(type, object, 'Background');
    tell(`${nameOf(object)} deleted`);
  }
}
