import { describeRef, objectId, refOf } from '../../contract/object.js';
import type { Api } from '../../engine/api.js';
import type { Clock } from '../../engine/clock.js';
import { CliError } from '../exit.js';
import type { ChildStatus, ResourceStatus, StatusDocument } from '../status/document.js';
import { follow } from '../status/follow.js';
import { Look } from '../status/look.js';
import { childSentence, newsIn, podSentence, resourceSentence } from '../status/sentences.js';
import type { Source } from '../status/source.js';
import type { Applied } from './carry-out.js';

export interface WaitProps {
  readonly api: Api;
  readonly clock: Clock;
  /** For how long the command may take, as it is told. */
  readonly timeoutMilliseconds: number;
  /** What is left of it. @default - all */
  readonly leftMilliseconds?: number;
  readonly signal: AbortSignal;
  /** How it goes on, in a line. */
  readonly tell: (line: string) => Promise<void>;
}

/**
 * Waits until custom resources are ready: by their own word where an operator looks after them, else by their children.
 * @throws CliError with exit code 3 and the reasons once the time is over, or where waiting is of no use
 */
export async function waitUntilReady(applied: readonly Applied[], props: WaitProps): Promise<void> {
  const looks = applied.map(lookOf);
  const own = new Set(applied.filter(({ operator }) => !operator).map(({ given }) => objectId(given.after)));
  const isOwn = (resource: ResourceStatus): boolean => own.has(objectId(resource));
  const late = new AbortController();
  const timer = props.clock.setTimer(props.leftMilliseconds ?? props.timeoutMilliseconds, () => {
    late.abort();
  });
  let before = new Map<string, string>();
  let last: StatusDocument | undefined;
  let outcome: 'ready' | 'stuck' | undefined;
  try {
    await follow({
      ...{ api: props.api, clock: props.clock, signal: AbortSignal.any([late.signal, props.signal]) },
      collect: (source) => collectAll(looks, source),
      onDocument: async (document) => {
        last = document;
        const progress = progressOf(document, isOwn, before.size > 0);
        for (const line of newsIn(before, progress)) await props.tell(line);
        before = new Map([...before, ...progress]);
        outcome = outcomeOf(document, applied.length, isOwn);
        return outcome !== undefined;
      },
    });
  } finally {
    timer.cancel();
  }
  if (outcome === 'ready') return;
  if (props.signal.aborted) throw new CliError('Interrupted: what was applied stays', 3);
  throw notReady(last, applied, isOwn, outcome === 'stuck' ? undefined : props.timeoutMilliseconds);
}

function lookOf({ given: { input, after }, operator }: Applied): Look {
  const { namespace, name } = after.metadata;
  return new Look({
    ...{ targets: [{ kind: input.kind, name }], operators: operator !== undefined },
    ...(namespace !== undefined && { namespace }),
  });
}

async function collectAll(looks: readonly Look[], source: Source): Promise<StatusDocument> {
  const all = await Promise.all(looks.map((look) => look.at(source)));
  return {
    operators: [],
    notes: [...new Set(all.flatMap(({ notes }) => notes))],
    resources: all.flatMap(({ resources }) => resources),
  };
}

type IsOwn = (resource: ResourceStatus) => boolean;

function outcomeOf(
  { resources }: StatusDocument,
  wanted: number,
  isOwn: IsOwn,
): 'ready' | 'stuck' | undefined {
  if (resources.length === wanted && resources.every((each) => isReady(each, isOwn(each)))) return 'ready';
  return resources.some((each) => isStuck(each, isOwn(each))) ? 'stuck' : undefined;
}

/** Children that can't be seen may be in any state. */
function isReady({ verdict, children, unseen = [] }: ResourceStatus, own: boolean): boolean {
  return own
    ? unseen.length === 0 && children.every(({ phase }) => phase === 'ready')
    : verdict.word === 'Ready' && verdict.current;
}

/** A right that is missing doesn't come by waiting. */
function isStuck({ verdict, children, unseen = [] }: ResourceStatus, own: boolean): boolean {
  return own
    ? children.some(({ phase }) => phase === 'stalled') || unseen.some(({ forbidden }) => forbidden)
    : verdict.word === 'Stalled' && verdict.current;
}

/** Sentences of what isn't ready yet and, once there were some, of what has become of them. */
function progressOf({ resources }: StatusDocument, isOwn: IsOwn, hasBegun: boolean): Map<string, string> {
  const entries = resources.flatMap((resource) => [
    ...(isOwn(resource) || (!hasBegun && isReady(resource, false)) ? [] : [resourceSentence(resource)]),
    ...resource.children.flatMap((child) => ofChild(child, hasBegun)),
  ]);
  return new Map(entries);
}

function ofChild(child: ChildStatus, hasBegun: boolean): (readonly [string, string])[] {
  const troubled = child.pods.filter(({ message }) => message !== undefined);
  return [
    ...(hasBegun || child.phase !== 'ready' ? [childSentence(child)] : []),
    ...troubled.map(podSentence),
  ];
}

/** @param afterMilliseconds of waiting; undefined where it is of no use */
function notReady(
  document: StatusDocument | undefined,
  applied: readonly Applied[],
  isOwn: IsOwn,
  afterMilliseconds: number | undefined,
): CliError {
  if (!document) return new CliError(neverSeen(applied, afterMilliseconds), 3);
  const { resources, notes } = document;
  const lines = applied.flatMap(({ given: { after } }) => {
    const found = resources.find((each) => objectId(each) === objectId(after));
    if (found && isReady(found, isOwn(found))) return [];
    const why = found ? reasonsOf(found, isOwn(found)) : ['  it is gone'];
    return [`${describeRef(refOf(after))} isn't ready${whenOf(afterMilliseconds)}`, ...why];
  });
  return new CliError([...lines, ...notes], 3);
}

function neverSeen(applied: readonly Applied[], afterMilliseconds: number | undefined): string[] {
  const names = applied.map(({ given: { after } }) => describeRef(refOf(after)));
  return [
    `Whether ${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} ready couldn't be seen${whenOf(afterMilliseconds)}: ` +
      'the API server has not answered with all of it',
  ];
}

function whenOf(afterMilliseconds: number | undefined): string {
  return afterMilliseconds === undefined ? '' : ` after ${afterMilliseconds / 1000} s`;
}

function reasonsOf(resource: ResourceStatus, own: boolean): string[] {
  const sentences = [
    ...(own ? [] : [resourceSentence(resource)]),
    ...resource.children.filter(({ phase }) => phase !== 'ready').map(childSentence),
    ...resource.children.flatMap(({ pods }) => pods.filter(({ ready }) => !ready).map(podSentence)),
  ];
  return [...sentences.map(([, sentence]) => sentence), ...resource.notes].map((line) => `  ${line}`);
}
