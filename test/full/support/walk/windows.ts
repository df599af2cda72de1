import type { Walk } from './plan.js';
import type { Spec } from './shape.js';

type Step = (before: Spec, after: Spec) => boolean;

const comes =
  (field: string): Step =>
  (before, after) =>
    !(field in before) && field in after;
const goes =
  (field: string): Step =>
  (before, after) =>
    comes(field)(after, before);

/** What a step can come to for the children, beside changed fields. */
const EVENTS: Readonly<Record<string, Step>> = {
  'the Service is made': comes('ports'),
  'the Service is deleted': goes('ports'),
  'the replicas are handed to an autoscaler': comes('autoscaling'),
  'the replicas are taken back': goes('autoscaling'),
  'the disruption budget is deleted': goes('disruption'),
  'the route is deleted': goes('route'),
  'a variable goes and others stay': losesItem('envs'),
  'a port goes and others stay': losesItem('ports'),
  'a file goes and others stay': losesItem('files'),
};

/** Of each walk as many steps as asked for, one after the other, so that together all of that happens. */
export function eventfulWindows(walks: readonly Walk[], length: number): Walk[] {
  const open = new Set(Object.keys(EVENTS));
  const chosen = walks.map((walk) => {
    const starts = walk.slice(0, Math.max(1, walk.length - length + 1)).map((_, index) => index);
    const gain = (start: number): number =>
      [...eventsIn(walk.slice(start, start + length))].filter((event) => open.has(event)).length;
    const best = starts.reduce((best, start) => (gain(start) > gain(best) ? start : best), 0);
    const window = walk.slice(best, best + length);
    for (const event of eventsIn(window)) open.delete(event);
    return window;
  });
  if (open.size > 0) throw new Error(`In no ${length} steps of a walk: ${[...open].join(', ')}`);
  return chosen;
}

function eventsIn(walk: Walk): Set<string> {
  const steps = walk.slice(1).map((after, index) => [walk[index]!, after] as const);
  const happens = (step: Step): boolean => steps.some(([before, after]) => step(before, after));
  return new Set(Object.keys(EVENTS).filter((event) => happens(EVENTS[event]!)));
}

function losesItem(field: string): Step {
  return (before, after) => {
    const [was, is] = [before, after].map((spec) => (spec[field] ?? []) as readonly object[]);
    const left = new Set(is!.map(keyOf));
    return is!.length > 0 && was!.some((item) => !left.has(keyOf(item)));
  };
}

/** What the API server merges the items of these lists by, or near enough. */
function keyOf(item: object): string {
  const { name, path, port, protocol } = item as Readonly<Record<string, unknown>>;
  return JSON.stringify(path ?? (port === undefined ? name : [port, protocol ?? 'TCP']));
}
