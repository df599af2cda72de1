import { readYaml, writeYaml } from '#contract/yaml.js';

/** The part of the tutorial's sample that the demo speaks of. */
export interface Sample {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly size: number;
    readonly image: string;
    readonly ports?: readonly SamplePort[];
  };
}

interface SamplePort {
  readonly port: number;
  readonly nodePort?: number;
}

export function parseSample(yaml: string): Sample {
  return readYaml(yaml) as Sample;
}

export function sampleYaml(sample: Sample): string {
  return writeYaml(sample);
}

/** Lets the cluster choose the node ports. */
export function withoutNodePorts(sample: Sample): Sample {
  const ports = sample.spec.ports?.map(({ nodePort, ...port }) => port);
  return { ...sample, spec: { ...sample.spec, ...(ports && { ports }) } };
}

export function withImage(sample: Sample, image: string): Sample {
  return { ...sample, spec: { ...sample.spec, image } };
}

/** The node ports that the sample asks for. */
export function nodePorts({ spec }: Sample): number[] {
  return (spec.ports ?? []).flatMap(({ nodePort }) => nodePort ?? []);
}
