/** The search field of a panel; `set` gets null if it is empty, so that it leaves the address. */
export function SearchField({
  label,
  placeholder,
  value,
  set,
}: {
  label: string;
  placeholder: string;
  value: string | null;
  set: (text: string | null) => void;
}) {
  return (
    <input
      type="search"
      className="search"
      aria-label={label}
      placeholder={placeholder}
      value={value ?? ""}
      onChange={(event) => set(event.target.value || null)}
    />
  );
}
