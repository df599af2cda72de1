import { OperatorError } from '../contract/error.js';
import { describeRef, refOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';

const LONGEST_LABEL = 63;
const LONGEST_NAME = 253;
/**
 * A CronJob's Jobs get eleven characters more.
 * @see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/
 */
const LONGEST_NAMES: Readonly<Record<string, number>> = { Service: 63, 'Job.batch': 63, 'CronJob.batch': 52 };

/**
 * A name or a label that the API server would refuse, since it is made of the custom resource's and became too long.
 * @param owner names the custom resource, for the message
 * @param ownersName its name alone
 * @throws OperatorError `NameTooLong`
 */
export function checkLengths(owner: string, ownersName: string, object: AnyObject): void {
  const { name, labels = {} } = object.metadata;
  const most = LONGEST_NAMES[groupKind(object)] ?? LONGEST_NAME;
  const texts: readonly Text[] = [
    { what: 'name', of: `a ${object.kind}`, text: name, most, remedy: 'make it shorter in the construct' },
    ...Object.entries(labels).map(([label, text]) => ({
      ...{ what: `label ${label}`, of: 'a label', text, most: LONGEST_LABEL },
      remedy: 'give the label another value',
    })),
  ];
  const long = texts.find((one) => one.text.length > one.most);
  if (!long) return;
  const what = `${owner} renders ${describeRef(refOf(object))}, whose ${long.what} has ${long.text.length} characters`;
  throw new OperatorError({
    reason: 'NameTooLong',
    message: `${what}, of which ${long.of} may have ${long.most}; ${long.remedy}${ruleFor(long, texts, ownersName)}`,
  });
}

/** What may be too long. */
interface Text {
  readonly what: string;
  readonly of: string;
  readonly text: string;
  /** How many characters it may have. */
  readonly most: number;
  readonly remedy: string;
}

/** How the CRD keeps such names out; nothing where the name of the custom resource isn't at fault. */
function ruleFor(long: Text, texts: readonly Text[], ownersName: string): string {
  if (!long.text.includes(ownersName) || longestOwner(long, ownersName) < 1) return '';
  const most = Math.min(...texts.map((text) => longestOwner(text, ownersName)));
  const rule = `[{ rule: 'self.metadata.name.size() <= ${most}' }]`;
  return `, or let the CRD refuse it: with rules: ${rule} in defineCrd, or "x-kubernetes-validations": ${rule} at the top of the schema`;
}

/** How many characters the custom resource's name may have, where a text is made of it. */
function longestOwner({ text, most }: Text, ownersName: string): number {
  const times = text.split(ownersName).length - 1;
  return times === 0 ? LONGEST_NAME : Math.floor((most - text.length) / times) + ownersName.length;
}
