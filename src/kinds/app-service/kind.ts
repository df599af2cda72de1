import { defineKind } from '../../contract/define-kind.js';
import type { Kind } from '../../contract/kind.js';
import { AppService } from './construct.js';
import type { AppServiceSpec, AppServiceStatus } from './spec.js';
import { appServiceStatus } from './status.js';

/** AppService of `kosmos.io/v1`: an image, a size and ports become a Deployment and a NodePort Service. */
export const appService = defineAppService(
  new URL('../../../crds/appservices.kosmos.io.yaml', import.meta.url),
);

/** The kind under the group of a CRD: the same fields, children and status, whatever the group is. */
export function defineAppService(crd: URL): Kind {
  return defineKind<AppServiceSpec, AppServiceStatus>({
    crd,
    construct: AppService,
    children: [
      { apiVersion: 'apps/v1', kind: 'Deployment' },
      { apiVersion: 'v1', kind: 'Service' },
    ],
    status: appServiceStatus,
  });
}
