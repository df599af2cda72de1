import type { Spec } from '../walk/fields.js';
import type { Walk } from '../walk/plan.js';
import { withoutMoment } from './outcome.js';
import type { Failure } from './outcome.js';

/** A walk that went wrong. */
interface WentWrong {
  readonly failures: readonly Failure[];
  /** The specs up to where it did. */
  readonly until: Walk;
}

interface Retrying extends Pick<ShortenProps, 'isValid' | 'hasTime'> {
  /**
   * Walks from the start on, and returns what goes wrong. In haste, something may be told that only takes a moment; that is
   * told apart in the end.
   */
  readonly walk: (specs: Walk, pace: 'hasty' | 'patient') => Promise<readonly Failure[]>;
}

const NOT_AGAIN = 'it did not come again when the same edits were made once more';

/**
 * The shortest sequence that goes wrong and was found in time, or else the one that it was found with: whichever it is, it has
 * gone wrong once more. What doesn't come again may hang on an order or a moment, so it remains a failure, and that is said.
 */
export async function shortened(
  { failures, until }: WentWrong,
  { walk, ...props }: Retrying,
): Promise<readonly Failure[]> {
  const isTheSame = (found: readonly Failure[]): boolean => placeOf(found) === placeOf(failures);
  const goesWrong = async (specs: Walk): Promise<boolean> => isTheSame(await walk(specs, 'hasty'));
  const shortest = await shorten(until, { ...props, goesWrong });
  let again: readonly Failure[] = [];
  for (const specs of new Set([shortest, until])) {
    again = await walk(specs, 'patient');
    if (isTheSame(again)) return again;
  }
  return [...failures.map(({ what, sequence }) => ({ what: `${what}; ${NOT_AGAIN}`, sequence })), ...again];
}

/** What is other than it should be, without values: a shorter walk has to go wrong there, and not elsewhere. */
function placeOf([failure]: readonly Failure[]): string | undefined {
  return failure && withoutMoment(failure.what).split(/ is |; /)[0];
}

interface ShortenProps {
  /** Tries a walk from its start on. */
  readonly goesWrong: (walk: Walk) => Promise<boolean>;
  /** Whether a spec can be sent. */
  readonly isValid: (spec: Spec) => boolean;
  /** Whether there is time for another try. */
  readonly hasTime: () => boolean;
}

/** A part of a spec: names of members, and places in lists. */
type Part = readonly (string | number)[];

/** Candidates that are tried at the same time. */
const AT_ONCE = 4;

/**
 * The shortest walk that still goes wrong and was found in time: first the last specs alone are tried, then to leave out
 * each of them, then each part of a spec, from the largest on.
 */
export async function shorten(walk: Walk, props: ShortenProps): Promise<Walk> {
  const search = new Search(walk, props);
  await search.lastSpecs();
  await search.withoutSteps();
  await search.withoutParts();
  return search.walk;
}

class Search {
  private readonly tried = new Set<string>();

  constructor(
    public walk: Walk,
    private readonly props: ShortenProps,
  ) {}

  async lastSpecs(): Promise<void> {
    for (let length = 2; length < this.walk.length; length = length * 2 - 1)
      if (await this.takeFirst([this.walk.slice(-length)])) return;
  }

  /** The last one is what goes wrong. */
  async withoutSteps(): Promise<void> {
    for (let index = 0; index < this.walk.length - 1 && this.walk.length > 2;)
      if (!(await this.takeFirst([this.walk.toSpliced(index, 1)]))) index++;
  }

  async withoutParts(): Promise<void> {
    for (let isShorter = true; isShorter;) isShorter = await this.withoutOnePart();
  }

  /** Of all specs at once where that will do, else of one. */
  private async withoutOnePart(): Promise<boolean> {
    const everywhere = partsOf(this.walk).map((part) => this.walk.map((spec) => without(spec, part) as Spec));
    const inOne = this.walk.flatMap((spec, index) =>
      partsOf([spec]).map((part) => this.walk.with(index, without(spec, part) as Spec)),
    );
    const candidates = [...everywhere, ...inOne].filter((walk) => walk.every(this.props.isValid));
    for (let start = 0; start < candidates.length; start += AT_ONCE)
      if (await this.takeFirst(candidates.slice(start, start + AT_ONCE))) return true;
    return false;
  }

  /** Goes on with the first of them that still goes wrong. Returns whether one does. */
  private async takeFirst(walks: readonly Walk[]): Promise<boolean> {
    if (!this.props.hasTime()) return false;
    const untried = walks.filter((walk) => !this.tried.has(JSON.stringify(walk)));
    for (const walk of untried) this.tried.add(JSON.stringify(walk));
    const wrong = await Promise.all(untried.map((walk) => this.props.goesWrong(walk)));
    const walk = untried[wrong.indexOf(true)];
    if (!walk) return false;
    this.walk = walk;
    return true;
  }
}

/** Those of all specs, the largest first. */
function partsOf(walk: Walk): Part[] {
  const parts = walk.flatMap((spec) => below(spec, []));
  const distinct = new Map(parts.map((part) => [JSON.stringify(part), part]));
  return [...distinct.values()].sort((a, b) => a.length - b.length);
}

function below(value: unknown, path: Part): Part[] {
  if (typeof value !== 'object' || value === null) return [];
  const keys = Array.isArray(value) ? [...value.keys()] : Object.keys(value);
  return keys.flatMap((key) => [
    [...path, key],
    ...below((value as Readonly<Record<string | number, unknown>>)[key], [...path, key]),
  ]);
}

function without(value: unknown, [step, ...rest]: Part): unknown {
  if (typeof value !== 'object' || value === null || step === undefined) return value;
  if (Array.isArray(value)) {
    const index = Number(step);
    if (!(index < value.length)) return value;
    return rest.length === 0 ? value.toSpliced(index, 1) : value.with(index, without(value[index], rest));
  }
  const { [step]: member, ...others } = value as Readonly<Record<string | number, unknown>>;
  if (member === undefined) return value;
  return rest.length === 0 ? others : { ...value, [step]: without(member, rest) };
}
