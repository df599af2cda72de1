import { loadCrd, servedType, storedVersion } from '../../contract/crd.js';
import type { Kind } from '../../contract/kind.js';
import { flags, targetsIn } from './flags.js';
import { policySchema } from './policy.js';
import { renderTogether } from './render-together.js';
import { SharedController } from './shared-controller.js';
import { StatusController } from './status-controller.js';
import { isNginx } from './targets.js';
import { watchesFor } from './watches.js';

const crd = loadCrd(
  new URL('../../../crds/streamingresses.nginx-stream.jeffthecoder.xyz.yaml', import.meta.url),
);
const type = servedType(crd, storedVersion(crd));

/**
 * StreamIngress of `nginx-stream.jeffthecoder.xyz/v1beta1`: a TCP or UDP port of a shared proxy that leads to a
 * Service.
 */
export const streamIngress: Kind = {
  name: 'streamingress',
  ...{ type, crd, policySchema, policyAtStart: true, flags },
  writers: 'admin',
  rendering: { together: (resources, context) => renderTogether(type, resources, context) },
  controllers: (context) => {
    const targets = targetsIn(context);
    const watches = watchesFor(type, targets);
    const statuses = new StatusController(type, targets, watches, context.render);
    return targets.all.some(isNginx) ? [statuses, new SharedController(type, targets, watches)] : [statuses];
  },
};
