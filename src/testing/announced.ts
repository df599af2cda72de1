import { readFileSync } from 'node:fs';
import { objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { fieldChanges, ofAnyItem } from '../engine/preview/fields.js';
import { compareRendered, isFixed, rollsPods } from '../engine/preview/rollout.js';
import { objectsIn } from '../validate/document.js';

/** Renderings that `requireAnnounced` compares. */
export interface AnnouncedProps {
  /** Objects as the last release renders them; or a file with them, as `reconstruct synth` prints them. */
  readonly before: readonly object[] | string | URL;
  /** Objects as they are rendered now, as by `render`. */
  readonly after: readonly object[];
  /** File such as `CHANGELOG.md`. Its entries above the heading of the last version count. */
  readonly announcedIn: string | URL;
}

/**
 * Makes a test fail where a change of the rendering replaces pods, and no entry of a changelog announces it: an entry that names
 * the kind, and in backticks the field or one above it, as in `` - Deployment: rolls its pods (`.spec.template.spec.containers[].image`) ``.
 * @throws with what to write, and the objects
 */
export function requireAnnounced({ before, after, announcedIn }: AnnouncedProps): void {
  const [news = ''] = readFileSync(announcedIn, 'utf8').split(/^#+ \[?v?\d/m);
  const entries = news.split(/\n\s*(?:\n|[-*] )/);
  const isFile = typeof before === 'string' || before instanceof URL;
  const was = isFile ? objectsIn({ name: String(before), text: readFileSync(before, 'utf8') }) : before;
  const missing = new Map<string, string[]>();
  const compared = compareRendered(was as AnyObject[], after as AnyObject[], () => ({ recreate: true }));
  for (const { action, before: old, after: fresh, ref } of compared) {
    const { kind, namespace, name } = ref;
    const changes = old && rollsPods(ref) ? fieldChanges(old, fresh) : [];
    const rolling = changes.filter((change) => rollsPods(ref, change.path) || (old && isFixed(old, change)));
    const isGone = action === 'deleted' && rollsPods(ref);
    for (const field of new Set(isGone ? ['.metadata.name'] : rolling.map(({ path }) => ofAnyItem(path)))) {
      const above = [...field.matchAll(/[.[]|$/g)].map(({ index }) => field.slice(0, index)).slice(2);
      const isNamed = (entry: string): boolean => above.some((path) => entry.includes(`\`${path}\``));
      if (entries.some((entry) => entry.includes(kind) && isNamed(entry))) continue;
      const what = isGone ? 'deleted with its pods, or renamed' : 'rolls its pods';
      const line = `- ${kind}: ${what} (\`${field}\`)`;
      missing.set(line, [...(missing.get(line) ?? []), objectKey(namespace, name)]);
    }
  }
  if (missing.size === 0) return;
  const lines = [...missing].map(([line, objects]) => `${line}\n  of ${objects.join(', ')}`);
  const what = `Pods would be replaced, and ${String(announcedIn)} doesn't announce it; write there:`;
  throw new Error([what, ...lines].join('\n'));
}
