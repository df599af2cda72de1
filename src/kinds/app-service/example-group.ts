import { defineAppService } from './kind.js';

/**
 * AppService of `app.example.com/v1`, the group of the Operator SDK's tutorial, with `v1alpha1` served beside it. Only
 * on request: two groups that offer one kind would make most commands ambiguous.
 */
export const appServiceOfExample = defineAppService(
  new URL('../../../crds/optional/appservices.app.example.com.yaml', import.meta.url),
);
