import type { Kind } from '../contract/kind.js';
import { appService } from './app-service/kind.js';

/** The kinds that come with the project. */
export const builtInKinds: readonly Kind[] = [appService];
