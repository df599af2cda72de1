import type { Plan } from './code.js';
import { VENDOR } from './dependency.js';

/** @param isVendored whether a packed file comes with the project */
export function readme({ names, design, library }: Plan, isVendored: boolean): string {
  const { project, kind, file, group } = names;
  const plural = design.children.length === 1 ? 'a' : 'these objects:';
  const made =
    design.children.length === 1 ? ` ${design.children[0] ?? ''}` : ` ${design.children.join(', ')}`;
  const rows = [
    ['file', 'holds'],
    ['`src/crd.ts`', 'what users may write: the schema, and the columns of `kubectl get`'],
    [`\`src/${file}.ts\``, `the construct: what one ${kind} is turned into`],
    ['`src/kind.ts`', 'the two tied together, and the kinds of objects that the construct may make'],
    ['`reconstruct.config.mjs`', 'what the command `reconstruct` loads'],
    ['`samples/`', `a ${kind} to try, which the tests take too`],
    ['`test/`', 'the snapshot, the operator on a real API server, and the sweep'],
    ...(isVendored ? [[`\`${VENDOR}/\``, `${library}, packed`]] : []),
  ];
  return `# ${project}

A Kubernetes operator for the kind \`${kind}\` of \`${group}/v1\`. A ${kind} stands for ${plural}${made}. The operator makes them, puts
them right when somebody changes them, and takes away what isn't asked for any more.

${table(rows)}

Node 22.19 or newer is needed; there is nothing to compile. The control plane of tests and \`dev\` is built once, with
[Go](https://go.dev/dl), which takes some minutes.

\`\`\`sh
npm install
npm run typecheck
npm test                # the snapshot, and the operator on a control plane of its own
npm run snapshots       # after a change that is meant: look at the difference, and commit it
npm run synth           # the sample's objects, without a cluster
npm run dev             # a control plane with the sample; everything is loaded again on save
npm run sweep           # kills, drifts, starves and edits it; tells what doesn't hold. Two minutes
npm run sweep -- status # one check alone
npm run sweep -- walk --seed 705919 # the same walk again, by the seed that the report tells
\`\`\`

To a cluster:

\`\`\`sh
export IMAGE=registry.example.com/${project}:0.1.0
npm run image && docker push $IMAGE
npm run manifests # dist/reconstruct.yaml: the CRD, the operator, and the rights that it needs and no others
kubectl apply --server-side -f dist/reconstruct.yaml
kubectl apply -f samples/${file}.yaml
kubectl wait --for=condition=Ready -f samples/${file}.yaml
\`\`\`
`;
}

/** In Markdown, its columns in line. */
function table([head = [], ...rows]: readonly (readonly string[])[]): string {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}
