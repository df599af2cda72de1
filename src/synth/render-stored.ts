import type { Render } from '../contract/kind.js';
import { render } from './render.js';

/**
 * Renders a custom resource as the API server stores it, with the construct of its kind: for programs that have read it there.
 * Tests take `render` of `reconstruct/testing`, which judges the custom resource by its CRD and fills in the defaults.
 *
 * **Guarantees.** In memory, without I/O; the same input gives the same objects, with the keys of their maps sorted. The
 * custom resource isn't changed. Every object is plain JSON, is of a type that the kind declares, and is there once.
 *
 * **Assumptions.** The custom resource is valid and has its defaults: nothing is checked or filled in.
 *
 * **Errors.** An OperatorError that the construct throws comes through as it is. Others: `RenderFailed`,
 * `UndeclaredChild`, `DuplicateChild`, `NameTooLong`, `ForeignNamespace`, `NotDeterministic`.
 */
export const renderStored: Render = render;
