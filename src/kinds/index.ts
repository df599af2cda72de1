import type { Kind } from '../contract/kind.js';
import { appService } from './app-service/kind.js';

/** The kinds that come with the project. */
export const builtInKinds: readonly Kind[] = [appService];

/** Kinds that come with it too, and are loaded only where they are named, by name and group. */
export const kindsOnRequest: Readonly<Record<string, () => Promise<Kind>>> = {
  'appservice.app.example.com': async () =>
    (await import('./app-service/example-group.js')).appServiceOfExample,
};
