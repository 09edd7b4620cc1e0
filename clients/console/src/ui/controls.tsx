/** Buttons, fields and menus. */

import type { ComponentChildren, JSX } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import { Check, Copy } from "lucide-preact";

import { t } from "../text";

type ButtonProps = Omit<JSX.ButtonHTMLAttributes<HTMLButtonElement>, "icon"> & {
  kind?: "primary" | "plain" | "danger" | "quiet";
  icon?: JSX.Element;
  busy?: boolean;
};

export function Button({ kind = "plain", icon, busy, children, ...rest }: ButtonProps) {
  return (
    <button type="button" {...rest} class={`button ${kind} ${rest.class ?? ""}`} disabled={busy || rest.disabled} aria-busy={busy}>
      {icon}
      {children}
    </button>
  );
}

/** A button that shows a sign alone; its label is read aloud and shown on hovering. */
export function IconButton({ label, icon, ...rest }: Omit<ButtonProps, "children"> & { label: string; icon: JSX.Element }) {
  return <Button kind="quiet" {...rest} class={`icon-only ${rest.class ?? ""}`} aria-label={label} title={label} icon={icon} />;
}

/** A link that looks like a button. */
export function LinkButton({ kind = "plain", icon, children, ...rest }: JSX.AnchorHTMLAttributes<HTMLAnchorElement> & { kind?: string; icon?: JSX.Element }) {
  return (
    <a {...rest} class={`button ${kind} ${rest.class ?? ""}`}>
      {icon}
      {children}
    </a>
  );
}

/** A label with its field, a hint and what is wrong. */
export function Field(props: { label: string; hint?: string; error?: string | undefined; hidden?: boolean; children: (wired: { id: string; "aria-describedby": string | undefined; "aria-invalid": boolean | undefined }) => ComponentChildren }) {
  const id = useId();
  const note = props.error ?? props.hint;
  return (
    <div class="field">
      <label for={id} class={props.hidden ? "unseen" : undefined}>
        {props.label}
      </label>
      {props.children({ id, "aria-describedby": note ? `${id}-note` : undefined, "aria-invalid": props.error ? true : undefined })}
      {note && (
        <p id={`${id}-note`} class={props.error ? "field-error" : "field-hint"}>
          {note}
        </p>
      )}
    </div>
  );
}

interface Wired {
  label: string;
  hint?: string;
  error?: string | undefined;
  /** Leaves the label to screen readers, where the place says what is meant. */
  hidden?: boolean;
}

export function TextField({ label, hint, error, hidden, ...rest }: Omit<JSX.InputHTMLAttributes<HTMLInputElement>, "label" | "hidden"> & Wired) {
  return (
    <Field label={label} error={error} {...(hint ? { hint } : {})} {...(hidden ? { hidden } : {})}>
      {(wired) => <input class="input" {...rest} {...wired} />}
    </Field>
  );
}

export function TextArea({ label, hint, error, hidden, ...rest }: Omit<JSX.TextareaHTMLAttributes<HTMLTextAreaElement>, "label" | "hidden"> & Wired) {
  return (
    <Field label={label} error={error} {...(hint ? { hint } : {})} {...(hidden ? { hidden } : {})}>
      {(wired) => <textarea class="input" {...rest} {...wired} />}
    </Field>
  );
}

export function Select({ label, hint, error, hidden, options, ...rest }: Omit<JSX.SelectHTMLAttributes<HTMLSelectElement>, "label" | "hidden"> & Wired & { options: { value: string; label: string }[] }) {
  return (
    <Field label={label} error={error} {...(hint ? { hint } : {})} {...(hidden ? { hidden } : {})}>
      {(wired) => (
        <select class="input" {...rest} {...wired}>
          {options.map((option) => (
            <option key={option.value} value={option.value} selected={option.value === rest.value}>
              {option.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** Copies a text, and tells whether it did. Pages that came from another machine without TLS have no clipboard: there a
 * selection is copied. */
async function copyText(text: string, beside: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.className = "unseen";
    field.value = text;
    beside.after(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    beside.focus();
    return done;
  }
}

/** Copies a text, and says so for a moment. */
export function CopyButton(props: { text: string }) {
  const [done, setDone] = useState(false);
  const timer = useRef<number>();
  const copy = async (button: HTMLElement) => {
    if (!(await copyText(props.text, button))) return;
    setDone(true);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => setDone(false), 2000);
  };
  return (
    <IconButton
      label={t(done ? "shell.copied" : "shell.copy")}
      icon={done ? <Check aria-hidden="true" /> : <Copy aria-hidden="true" />}
      onClick={(event) => void copy(event.currentTarget)}
    />
  );
}
