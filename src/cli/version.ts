import { readFileSync } from 'node:fs';

interface Package {
  readonly version: string;
  /** Only in a bundle that was made for a release. */
  readonly image?: string;
  readonly devDependencies: Readonly<Record<string, string>>;
}

/** The bundler puts in what is read here. */
function ownPackage(): Package {
  return JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as Package;
}

/** The version of this package. */
export function packageVersion(): string {
  return ownPackage().version;
}

/** The image of this version: that of the release, or else the one that `npm run image:build` makes. */
export function operatorImage(): string {
  const { version, image } = ownPackage();
  return image ?? `reconstruct:${version}`;
}

/** The version of a package that this one is built and tested with. */
export function testedVersion(name: TestedPackage): string {
  const version = ownPackage().devDependencies[name];
  if (version === undefined) throw new Error(`${name} is no dependency of this package`);
  return version;
}

/** Packages that projects of authors need as well; the bundler knows of them too. */
export type TestedPackage = '@types/node' | 'cdk8s' | 'constructs' | 'typescript';
