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
 * @throws OperatorError `NameTooLong`
 */
export function checkLengths(owner: string, object: AnyObject): void {
  const { name, labels = {} } = object.metadata;
  const most = LONGEST_NAMES[groupKind(object)] ?? LONGEST_NAME;
  const what = `${owner} renders ${describeRef(refOf(object))}, whose`;
  if (name.length > most)
    throw tooLong(
      `${what} name has ${name.length} characters, of which a ${object.kind} may have ${most}`,
      'make it shorter in the construct',
    );
  const label = Object.entries(labels).find(([, value]) => value.length > LONGEST_LABEL);
  if (label)
    throw tooLong(
      `${what} label ${label[0]} has ${label[1].length} characters, of which a label may have ${LONGEST_LABEL}`,
      'give the label another value',
    );
}

function tooLong(what: string, otherwise: string): OperatorError {
  const rule = '"x-kubernetes-validations: [{ rule: size(self.metadata.name) <= ... }]"';
  return new OperatorError({
    reason: 'NameTooLong',
    message: `${what}; write ${rule} into the schema of the CRD, or ${otherwise}`,
  });
}
