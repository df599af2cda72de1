import { ApiObject, JsonPatch } from 'cdk8s';
import { defineKind } from 'cdk8s-reconstruct';
import { AppService } from '../../../lib/kinds/app-service/construct.js';

const POLICY = '/spec/template/spec/containers/0/imagePullPolicy';

/** AppService as a version would have it that changes every Deployment. */
class NextVersion extends AppService {
  constructor(scope, id, props) {
    super(scope, id, props);
    for (const child of this.node.findAll())
      if (ApiObject.isApiObject(child) && child.kind === 'Deployment')
        child.addJsonPatch(JsonPatch.add(POLICY, 'Always'));
  }
}

const appService = defineKind({
  crd: new URL('../../../crds/appservices.kosmos.io.yaml', import.meta.url),
  construct: NextVersion,
  children: [
    { apiVersion: 'apps/v1', kind: 'Deployment' },
    { apiVersion: 'v1', kind: 'Service' },
  ],
});

export default { builtIn: false, kinds: [appService] };
