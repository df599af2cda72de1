/** How one field of a spec is set, changed and removed again, as whole specs. */
export interface FieldEdit {
  /** As the schema walk names it: `ports.[].name`. */
  readonly path: string;
  /** Valid, and without the field; for a required field, with another value. */
  readonly without: object;
  readonly set: object;
  readonly changed: object;
  /** The reason of the condition, where the API server can't accept the field without something else in the pod. */
  readonly refusedWith?: string;
}
