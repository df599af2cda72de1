import { ApiObject, JsonPatch } from 'cdk8s';
import { defineKind } from 'cdk8s-reconstruct';
import { AppService } from '../../../lib/kinds/app-service/construct.js';

const POD = '/spec/template/spec';

/** AppService as a version would have it that changes every Deployment; pods of the image `fragile` find no node then. */
class NextVersion extends AppService {
  constructor(scope, id, props) {
    super(scope, id, props);
    for (const child of this.node.findAll()) {
      if (!ApiObject.isApiObject(child) || child.kind !== 'Deployment') continue;
      child.addJsonPatch(JsonPatch.add(`${POD}/containers/0/imagePullPolicy`, 'Always'));
      if (props.spec.image === 'fragile')
        child.addJsonPatch(JsonPatch.add(`${POD}/nodeSelector`, { 'example.com/absent': 'yes' }));
    }
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
