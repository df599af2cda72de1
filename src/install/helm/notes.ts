import { INSTALL_NAME } from '../names.js';

/** What Helm says once a release is installed or upgraded: what to do next. */
export const NOTES = `${INSTALL_NAME} is installed in {{ $.Release.Namespace }}. It looks after {{ include "reconstruct.kinds" $ | replace "," ", " }}
{{- with $.Values.watchNamespaces }} in {{ sortAlpha . | join ", " }}{{ end }}.

Wait until it is ready:

  kubectl rollout status deployment/${INSTALL_NAME} --namespace {{ $.Release.Namespace }}

Apply a custom resource, such as one of examples/ in the repository:

  kubectl apply -f FILE

See how it fares, what was made for it, and why it isn't ready yet:

  reconstruct status
`;
