import { describeRef } from '../../contract/object.js';
import type {
  ChildStatus,
  EventStatus,
  OperatorStatus,
  PodStatus,
  ResourceStatus,
  StatusDocument,
} from './document.js';

/**
 * A document as sentences, each under a key that stays the same: by comparing two of them, one learns what has changed.
 * Nothing in them depends on the time of day.
 */
export function sentencesOf({ operators, notes, resources }: StatusDocument): Map<string, string> {
  return new Map([
    ...operatorSentences(operators),
    ...notes.map((note) => [note, note] as const),
    ...resources.flatMap(ofResource),
  ]);
}

/** One for each operator, or that there is none; nothing where that can't be seen. */
export function operatorSentences(operators: StatusDocument['operators']): Entry[] {
  if (operators?.length === 0) return [['operator', 'Operator: not installed']];
  return (operators ?? []).map((operator) => [`operator ${operator.namespace}`, operatorText(operator)]);
}

function operatorText({ namespace, available, replicas, leader }: OperatorStatus): string {
  const state = available > 0 ? 'ready' : 'not ready';
  const leads = leader === undefined ? '' : `, leader ${leader}`;
  return `Operator in ${namespace}: ${state}, ${available} of ${replicas}${leads}`;
}

/** Where a type of children can't be listed, those that aren't spoken of any more may be there all the same. */
export function goneText({ resources }: StatusDocument): string {
  const isWhole = resources.every(
    ({ notServed = [], unseen = [] }) => notServed.length + unseen.length === 0,
  );
  return isWhole ? GONE : 'is not seen any more';
}

const GONE = 'is gone';

/**
 * What is said now, and wasn't before.
 * @param goneText what is said of children and pods that were spoken of and aren't any more
 */
export function newsIn(
  before: ReadonlyMap<string, string>,
  now: ReadonlyMap<string, string>,
  goneText = GONE,
): string[] {
  const told = [...now].filter(([key, sentence]) => before.get(key) !== sentence);
  const gone = [...before.keys()].filter((key) => !now.has(key));
  return [
    ...told.map(([, sentence]) => sentence),
    ...gone.flatMap((key) => {
      if (key.startsWith(RESOURCE)) return [`${subjectOf(before, key)}: ${GONE}`];
      return key.startsWith(OBJECT) ? [`${subjectOf(before, key)}: ${goneText}`] : [];
    }),
  ];
}

const RESOURCE = 'resource ';
const OBJECT = 'object ';
const EVENT = 'event ';

/** @param key of a sentence */
export function isEvent(key: string): boolean {
  return key.startsWith(EVENT);
}

function subjectOf(sentences: ReadonlyMap<string, string>, key: string): string {
  return (sentences.get(key) ?? '').replace(/: .*$/s, '');
}

export type Entry = readonly [key: string, sentence: string];

function ofResource(resource: ResourceStatus): Entry[] {
  const { facts, children, events, notes, uid } = resource;
  const name = describeRef(resource);
  return [
    resourceSentence(resource),
    ...facts.map(({ name: fact, text }): Entry => [`fact ${uid} ${fact}`, `${name}: ${fact}: ${text}`]),
    ...children.flatMap(ofChild),
    ...[...events].sort((a, b) => Date.parse(a.at) - Date.parse(b.at)).map(ofEvent),
    ...notes.map((note): Entry => [`note ${uid} ${note}`, `${name}: ${note}`]),
  ];
}

export function resourceSentence(resource: ResourceStatus): Entry {
  const { uid, verdict } = resource;
  return [`${RESOURCE}${uid}`, `${describeRef(resource)}: ${verdictText(resource)}: ${verdict.message}`];
}

/** Such as `Ready Available`, or what it was when somebody looked at it last. */
export function verdictText({ verdict }: Pick<ResourceStatus, 'verdict'>): string {
  const { word, reason, current, byChildren = false } = verdict;
  if (byChildren) return `${word}, by its children`;
  const said = `${word} ${reason}`.trim();
  return current || word === 'Unknown' ? said : `${said}, of an earlier generation`;
}

function ofChild(child: ChildStatus): Entry[] {
  return [childSentence(child), ...child.pods.map(podSentence)];
}

export function childSentence(child: ChildStatus): Entry {
  const text = `${describeRef(child)}: ${PHASES[child.phase]}: ${childText(child)}`;
  return [`${OBJECT}${child.uid}`, text];
}

export const PHASES = {
  ready: 'Ready',
  progressing: 'Progressing',
  failing: 'Failing',
  stalled: 'Stalled',
} as const;

/** Its message without its name, which stands before it. */
export function childText(child: ChildStatus): string {
  const name = describeRef(child);
  const { message } = child;
  if (!message.startsWith(name)) return message;
  return message.slice(name.length).replace(/^:? /, '');
}

export function podSentence(pod: PodStatus): Entry {
  const why = pod.message === undefined ? '' : `: ${pod.message}`;
  return [`${OBJECT}${pod.uid}`, `${describeRef(pod)}: ${podText(pod)}${why}`];
}

/** Such as `0/1 CrashLoopBackOff, 5 restarts`. */
export function podText({ readyContainers, containers, state, restarts }: PodStatus): string {
  const again = restarts === 0 ? '' : `, ${restarts} ${restarts === 1 ? 'restart' : 'restarts'}`;
  return `${readyContainers}/${containers} ${state}${again}`;
}

function ofEvent({ regarding, type, reason, note, at }: EventStatus): Entry {
  const subject = `${regarding.kind} ${regarding.name}`;
  // Its time tells one that has come again from the one that was told.
  return [`${EVENT}${subject} ${reason} ${note} ${at}`, `Event of ${subject}: ${type} ${reason}: ${note}`];
}
