import { defineKind } from '../../contract/define-kind.js';
import { AppService } from './construct.js';
import type { AppServiceSpec, AppServiceStatus } from './spec.js';
import { appServiceStatus } from './status.js';

/** AppService of `kosmos.io/v1`: an image, a size and ports become a Deployment and a NodePort Service. */
export const appService = defineKind<AppServiceSpec, AppServiceStatus>({
  crd: new URL('../../../crds/appservices.kosmos.io.yaml', import.meta.url),
  construct: AppService,
  children: [
    { apiVersion: 'apps/v1', kind: 'Deployment' },
    { apiVersion: 'v1', kind: 'Service' },
  ],
  status: appServiceStatus,
});
